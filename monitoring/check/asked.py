"""Every place where PromQL stands: panels, variables, rules, and the templates of annotations."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from monitoring.check.grafana import Dashboard, Link, Panel, Target, Variable
from monitoring.check.loaded import Loaded
from monitoring.check.problem import Problem
from monitoring.check.rule import Rule
from monitoring.check.syntax import filled


class Asked(NamedTuple):
    """A query and where it stands. `shown` are labels of its answer that are shown, each with where."""

    file: str
    place: str
    text: str
    shown: tuple[tuple[str, str], ...] = ()
    panel: Panel | None = None
    target: Target | None = None
    rule: Rule | None = None

    def problem(self, text: str) -> Problem:
        """At this query."""
        return Problem(self.file, self.place, text)


_LABEL_VALUES: Final = re.compile(r"label_values\(\s*(?P<series>.+),\s*(?P<label>\w+)\s*\)")
_OTHER_FUNCTION: Final = re.compile(r"query_result\((?P<series>.*)\)")
_OF_DATA: Final = ("datasource", "query")
_LEGEND: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_FIELD_LABEL: Final = re.compile(r"\$\{__field\.labels\.(\w+)\}")
_ALERT_LABEL: Final = re.compile(r"\$labels\.(\w+)")
_ACTION: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_TEXT: Final = re.compile(r'"(?P<quoted>(?:[^"\\]|\\.)*)"|`(?P<raw>[^`]*)`')
_TEMPLATE_LABEL: Final = re.compile(r'label\s+"(\w+)"')
_VERB: Final[Mapping[str, str]] = {"%q": '"value"', "%s": "value", "%v": "value"}
"""What Go's printf may put into a query."""


def asked(loaded: Loaded) -> Iterator[Asked]:
    """All of them, file by file."""
    for file, dashboard in loaded.dashboards.items():
        yield from _by_dashboard(file, dashboard)
    for file, rule in loaded.all_rules:
        shown = tuple((label, name) for name, text in _templates(rule) for label in _ALERT_LABEL.findall(text))
        yield Asked(file, rule.place, rule.expr, shown, rule=rule)
        for name, text in _templates(rule):
            yield from _by_template(file, f"{rule.place} {name}", text)


def links(panel: Panel) -> Iterator[Link]:
    """Those on its head, its values, and single columns."""
    yield from panel.links
    yield from panel.field_config.defaults.links
    yield from column_links(panel)


def column_links(panel: Panel) -> Iterator[Link]:
    """Those that overrides set."""
    for override in panel.field_config.overrides:
        for each in override.get("links") or []:
            yield Link(title=each.get("title", ""), url=each.get("url", ""))


def heads(panel: Panel) -> dict[str, str]:
    """What a table calls its columns, by label or `Value #A`."""
    found: dict[str, str] = {}
    for step in panel.transformations:
        if step.id == "organize":
            found |= step.options.get("renameByName", {})
    return found


def settled(text: str, dashboard: Dashboard) -> str:
    """The query with the values of variables that are no labels' values: of a list of its own, or a text."""
    chosen = {
        each.name: str(each.current.get("value", "")) for each in dashboard.variables if each.type not in _OF_DATA
    }
    return filled(text, chosen)


def series_of(variable: Variable) -> tuple[str, str] | None:
    """The PromQL in a variable's query, and the label it lists."""
    if match := _LABEL_VALUES.fullmatch(variable.text):
        return match["series"], match["label"]
    match = _OTHER_FUNCTION.fullmatch(variable.text)
    return (match["series"], "") if match else None


def _by_dashboard(file: str, dashboard: Dashboard) -> Iterator[Asked]:
    for variable in dashboard.variables:
        found = series_of(variable) if variable.type == "query" else None
        if found:
            series, label = found
            shown = ((label, "label_values"),) if label else ()
            yield Asked(file, f'variable "{variable.name}"', series, shown)
    for annotation in dashboard.marks:
        texts = tuple((label, "text") for label in _LEGEND.findall(annotation.text_format))
        yield Asked(file, f'annotation "{annotation.name}"', annotation.expr, texts)
    for panel in dashboard.all_panels:
        for target in panel.targets:
            place = f"{panel.place} {target.ref_id}" if len(panel.targets) > 1 else panel.place
            yield Asked(file, place, settled(target.expr, dashboard), tuple(_shown(panel, target)), panel, target)


def _shown(panel: Panel, target: Target) -> Iterator[tuple[str, str]]:
    for label in _LEGEND.findall(target.legend_format):
        yield label, "legend"
    for link in links(panel):
        yield from ((label, f'link "{link.title}"') for label in _FIELD_LABEL.findall(link.url))


def _templates(rule: Rule) -> Iterator[tuple[str, str]]:
    yield from rule.annotations.items()
    yield from ((f"label {name}", text) for name, text in rule.labels.items())


def _by_template(file: str, place: str, text: str) -> Iterator[Asked]:
    shown = tuple((label, "template") for label in _TEMPLATE_LABEL.findall(text))
    for action in _ACTION.findall(text):
        match = _TEXT.search(action) if re.search(r"\bquery\b", action) else None
        if match:
            query = match["raw"] if match["quoted"] is None else match["quoted"].replace('\\"', '"')
            for verb, value in _VERB.items():
                query = query.replace(verb, value)
            yield Asked(file, place, query, shown)
