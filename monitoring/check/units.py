"""Whether panels show values in units of what they measure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from monitoring import unit
from monitoring.check.answer import Answer
from monitoring.check.asked import heads
from monitoring.check.dimension import INFO, NUMBER, STATE, Dimension, named
from monitoring.check.grafana import Panel, Target
from monitoring.check.grafana_units import is_currency, is_unit
from monitoring.check.problem import Problem
from monitoring.unit import Unit

_UNITS: Final = tuple(each for each in vars(unit).values() if isinstance(each, Unit))


def problems(answers: Iterable[Answer], exempt: Mapping[tuple[str, str], str]) -> Iterator[Problem]:
    """Values in the unit of something else, money of an unknown currency; and exemptions that nothing needs."""
    needed = set()
    answers = list(answers)
    for answer in answers:
        asked = answer.asked
        if asked.panel is None or asked.target is None:
            continue
        for text in _of_target(answer, asked.panel, asked.target):
            if (asked.file, asked.panel.title) in exempt:
                needed.add((asked.file, asked.panel.title))
            else:
                yield asked.problem(text)
    panels = {(answer.asked.file, panel.title): panel for answer in answers if (panel := answer.asked.panel)}
    for (file, _), panel in panels.items():
        yield from (Problem(file, panel.place, text) for text in _unknown(panel))
    for file, title in sorted(exempt.keys() - needed):
        place = f'MEASURED_OTHERWISE {file} "{title}"'
        yield Problem("monitoring/allowed.py", place, "nothing needs it any more; take it out")


def _unknown(panel: Panel) -> Iterator[str]:
    field = panel.field_config
    units = {field.defaults.unit, *(str(each.get("unit")) for each in field.overrides if each.get("unit"))}
    for name in sorted(units - {""}):
        if not is_unit(name):
            yield f"Grafana knows no unit {name!r}; take one of its list, or 'suffix: {name}'"


def _of_target(answer: Answer, panel: Panel, target: Target) -> Iterator[str]:
    if _is_left_out(panel, target):
        return
    shown = shown_as(panel, target)
    measured = answer.flow.dimension
    if panel.type == "heatmap":
        measured = answer.flow.bounds or measured
    fitting = _dimensions(shown)
    if not fitting:
        yield f"unit {shown!r} is none of ours; take one of monitoring/unit.py, or add it there with its dimension"
    elif not _fits(measured, fitting, panel):
        what = " or ".join(map(str, fitting))
        yield f"the query gives {measured}, but {shown!r} shows {what}; change unit or query"
    if answer.flow.is_mixed:
        yield from _of_money(panel, target)


def _is_left_out(panel: Panel, target: Target) -> bool:
    """A query of a table may be there for its labels alone."""
    excluded = (step.options.get("excludeByName", {}) for step in panel.transformations)
    return any(names.get(f"Value #{target.ref_id}") for names in excluded)


def shown_as(panel: Panel, target: Target) -> str:
    """Grafana's name of the unit for what a target answers."""
    names = {("byFrameRefID", target.ref_id), ("byName", target.legend_format), ("byName", head_of(panel, target))}
    for override in panel.field_config.overrides:
        value = override.get("unit")
        if value and (override.matcher.id, override.matcher.options) in names:
            return str(value)
    return panel.field_config.defaults.unit


def head_of(panel: Panel, target: Target) -> str:
    """What a table calls the column of the target's values."""
    found = heads(panel)
    return found.get(f"Value #{target.ref_id}") or found.get("Value", "")


def _dimensions(shown: str) -> list[Dimension]:
    """Several of ours may be called the same by Grafana; a currency is for any amount of money."""
    money = is_currency(shown)
    fitting = (each for each in _UNITS if each.grafana == shown or (money and each.dimension.startswith("money")))
    return list(dict.fromkeys(named(each.dimension) for each in fitting))


def _fits(measured: Dimension, fitting: Collection[Dimension], panel: Panel) -> bool:
    """Words may stand for any number that tells a state."""
    if measured in (NUMBER, INFO, *fitting):
        return True
    return measured == STATE and bool(panel.field_config.defaults.mappings)


def _of_money(panel: Panel, target: Target) -> Iterator[str]:
    """Amounts are worth nothing without their currency."""
    if panel.type == "table":
        if "currency" not in heads(panel):
            yield "the table does not say in which currency; make currency one of its keys"
        return
    if "{{currency}}" not in target.legend_format:
        yield "the legend does not say in which currency; add {{currency}} to it"
    if not any(is_currency(str(each.get("unit"))) for each in panel.field_config.overrides):
        yield "it shows money without the sign of a currency; give it the overrides of MONEY"
