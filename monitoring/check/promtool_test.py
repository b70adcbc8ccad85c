"""Whether every alert has tests for promtool that show it quiet, firing, resolved, and without its series."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import promql_parser as promql
import yaml
from promql_parser import Matcher, VectorSelector

from monitoring.check.answer import Answer
from monitoring.check.problem import Problem
from monitoring.check.promtool_file import Test, read
from monitoring.check.syntax import matchers, name_of, parsed, selectors

FOLDER: Final = "tests/promtool"


def problems(root: Path, answers: Iterable[Answer]) -> Iterator[Problem]:
    """Of the tests of all alerts, and of tests for none."""
    alerts = _reads(answers)
    for alert, asked in alerts.items():
        path = root / FOLDER / f"{alert}.yaml"
        yield from (Problem(f"{FOLDER}/{path.name}", place, text) for place, text in _of_file(path, alert, asked))
    for path in sorted((root / FOLDER).glob("*.yaml")):
        if path.stem not in alerts:
            yield Problem(f"{FOLDER}/{path.name}", "", "there is no such alert; rename the tests or take them out")


def _reads(answers: Iterable[Answer]) -> Mapping[str, list[VectorSelector]]:
    """For each alert the series it depends on, those behind recorded ones too."""
    rules = [(rule, [each for each, _ in selectors(answer.tree)]) for answer in answers if (rule := answer.asked.rule)]
    recorded = {rule.record: asked for rule, asked in rules if rule.record}
    return {rule.alert: list(_behind(asked, recorded)) for rule, asked in rules if rule.alert}


def _behind(asked: Iterable[VectorSelector], recorded: Mapping[str, list[VectorSelector]]) -> Iterator[VectorSelector]:
    for selector in asked:
        made_of = recorded.get(name_of(selector))
        yield from [selector] if made_of is None else _behind(made_of, recorded)


def _of_file(path: Path, alert: str, asked: list[VectorSelector]) -> Iterator[tuple[str, str]]:
    if not path.exists():
        yield "", f"the alert has no tests; write {', '.join(_WANTED)}"
        return
    try:
        tests = read(path)
    except (msgspec.MsgspecError, yaml.YAMLError) as error:
        yield "", f"cannot be read: {error}; write it as promtool's unit tests"
        return
    for name, (fits, remedy) in _WANTED.items():
        of_name = [test for test in tests if test.name == name]
        if not of_name:
            yield name, "there is no test of that name; write it"
        elif not all(fits(test, alert) for test in of_name):
            yield name, f"it does not show what it is called after; {remedy}"
    for test in tests:
        if test.name == "missing" and all(_is_fed(selector, test) for selector in asked):
            some = ", ".join(dict.fromkeys(map(str, asked)))
            yield "missing", f"it feeds all that the alert reads; leave out one of {some}"


def _quiet(test: Test, alert: str) -> bool:
    return bool(test.looks(alert)) and not test.firing(alert)


def _fires(test: Test, alert: str) -> bool:
    expected = (each for look in test.looks(alert) for each in look.exp_alerts or [])
    return any(each.exp_labels and each.exp_annotations for each in expected)


def _resolves(test: Test, alert: str) -> bool:
    firing, silent = test.firing(alert), test.silent(alert)
    return bool(firing and silent) and max(silent) > min(firing)


def _missing(test: Test, alert: str) -> bool:
    return bool(test.looks(alert))


_WANTED: Final[Mapping[str, tuple[Callable[[Test, str], bool], str]]] = {
    "quiet": (_quiet, "look at the alert, and expect it never"),
    "fires": (_fires, "expect it with exp_labels and exp_annotations"),
    "resolves": (_resolves, "expect it, and at a later eval_time no more"),
    "missing": (_missing, "look at the alert"),
}
"""By the name of a test, what it must do, and how to make it so."""


def _is_fed(selector: VectorSelector, test: Test) -> bool:
    """Whether the test has a series that the alert reads by that selector."""
    for each in test.input_series:
        fed = parsed(each.series)
        if isinstance(fed, VectorSelector) and name_of(fed) == name_of(selector):
            labels = {matcher.name: matcher.value for matcher in matchers(fed)}
            if all(_holds(matcher, labels.get(matcher.name, "")) for matcher in matchers(selector)):
                return True
    return False


def _holds(matcher: Matcher, value: str) -> bool:
    if matcher.op in (promql.MatchOp.Equal, promql.MatchOp.NotEqual):
        return bool((matcher.value == value) == (matcher.op == promql.MatchOp.Equal))
    found = re.fullmatch(matcher.value, value) is not None
    return bool(found == (matcher.op == promql.MatchOp.Re))
