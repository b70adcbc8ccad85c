"""Checks that alerts have annotations, runbooks, dashboards and tests."""

from pathlib import Path

import pytest

from monitoring.check import alert as alerts
from monitoring.check import promtool_test
from tests.monitoring.documents import RULES, Json, alert, annotations, answered, board, loaded, rules

RUNBOOK = "docs/runbooks/PodsWait.md"
TESTS = "tests/promtool/PodsWait.yaml"
EXPECTED = "exp_alerts: [{exp_labels: {tier: a}, exp_annotations: {summary: Pods wait.}}]"
GOOD = {
    "quiet": "alert_rule_test: [{eval_time: 1m, alertname: PodsWait}]",
    "fires": f"alert_rule_test: [{{eval_time: 1m, alertname: PodsWait, {EXPECTED}}}]",
    "resolves": (
        f"alert_rule_test: [{{eval_time: 1m, alertname: PodsWait, {EXPECTED}}}, {{eval_time: 1h, alertname: PodsWait}}]"
    ),
    "missing": "alert_rule_test: [{eval_time: 0, alertname: PodsWait}]",
}


def series(*names: str) -> str:
    return "input_series: [" + ", ".join(f"{{series: '{name}', values: 1x9}}" for name in names) + "]"


def written(changes: dict[str, str | None]) -> str:
    """A file of tests, without those that are None."""
    fed = series('pods{tier="a"}')
    found = {name: text for name, text in {**GOOD, **changes}.items() if text is not None}
    parts = {
        name: text if "input_series" in text or name == "missing" else f"{fed}, {text}" for name, text in found.items()
    }
    return "tests:\n" + "".join(f"- {{name: {name}, {text}}}\n" for name, text in parts.items())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a runbook and tests for the alert."""
    for name, text in ((RUNBOOK, "# PodsWait\n"), ("docs/runbooks/README.md", ""), (TESTS, written({}))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def problems(root: Path, *found: Json) -> list[str]:
    documents = loaded(board(), rule=rules(*(found or [alert()])), root=root)
    answers, unanswered = answered(documents)
    assert not unanswered
    every = (*alerts.problems(documents), *alerts.humanized(answers), *promtool_test.problems(root, answers))
    return [str(each) for each in every]


def test_a_correct_alert_has_no_problem(root: Path) -> None:
    assert problems(root) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (alert(labels={}), "its severity is ''; make it one of critical, warning, info"),
        (alert(labels={"severity": "page"}), "its severity is 'page'; make it one of critical, warning, info"),
        (alert(annotations=annotations(summary="")), "it has no summary; say in a sentence what is wrong"),
        (alert(annotations=annotations(summary="{{ $value }} pods wait.")), "its summary differs from alert to alert"),
        (alert(annotations=annotations(description="Pods wait.")), "its description names no label or value"),
        (alert(annotations=annotations(description="")), "its description names no label or value"),
        (alert(annotations=annotations(runbook_url="")), "its runbook_url does not end in /PodsWait.md; make it so"),
        (alert(annotations=annotations(runbook_url="https://a/b.md")), "its runbook_url does not end in /PodsWait.md"),
        (alert(annotations=annotations(dashboard_url="")), "it has no dashboard_url; say which dashboard to look at"),
        (
            alert(annotations=annotations(dashboard_url="/d/gputally-other")),
            "dashboard_url: there is no dashboard gputally-other; there are gputally-small",
        ),
        (
            alert(annotations=annotations(dashboard_url="/d/gputally-small?var-tier={{ $labels.tier }}")),
            "dashboard_url: gputally-small has no variable tier; there are cluster, datasource",
        ),
        (
            alert(annotations=annotations(description="For {{ $value | humanizeDuration }}.")),
            "its value is count, but humanizeDuration shows seconds; take another",
        ),
        (
            alert(annotations=annotations(description="{{ $value | humanizePercentage }}.")),
            "its value is count, but humanizePercentage shows ratio; take another",
        ),
    ],
)
def test_an_alert_with_wrong_labels_or_annotations_is_reported(root: Path, changed: Json, problem: str) -> None:
    [found] = problems(root, changed)

    assert found.startswith(f'{RULES}: alert "PodsWait": {problem}')


def test_a_value_with_the_right_humanize_function_has_no_problem(root: Path) -> None:
    late = alert(
        "max by (cluster, tier) (time() - oldest_timestamp_seconds) > 60",
        annotations=annotations(description="For {{ $value | humanizeDuration }}."),
    )
    (root / TESTS).write_text(written({"missing": f"{series('pods')}, {GOOD['missing']}"}))

    assert problems(root, late) == []


def test_an_alert_without_a_runbook_is_reported(root: Path) -> None:
    (root / RUNBOOK).unlink()

    assert problems(root) == [f'{RULES}: alert "PodsWait": it has no runbook; write {RUNBOOK}']


def test_a_runbook_without_an_alert_is_reported(root: Path) -> None:
    (root / "docs/runbooks/Gone.md").touch()

    assert problems(root) == ["docs/runbooks/Gone.md: there is no such alert; rename the runbook or take it out"]


def test_alerts_with_the_same_name_are_reported(root: Path) -> None:
    assert 'alerts/generated: alert "PodsWait": declared 2 times; rename one' in problems(root, alert(), alert())


def test_tests_without_an_alert_are_reported(root: Path) -> None:
    (root / "tests/promtool/Gone.yaml").touch()

    assert problems(root) == ["tests/promtool/Gone.yaml: there is no such alert; rename the tests or take them out"]


def test_an_alert_without_tests_is_reported(root: Path) -> None:
    (root / TESTS).unlink()

    assert problems(root) == [f"{TESTS}: the alert has no tests; write quiet, fires, resolves, missing"]


def test_unreadable_tests_are_reported(root: Path) -> None:
    (root / TESTS).write_text("tests: 3\n")

    [problem] = problems(root)

    assert problem.startswith(f"{TESTS}: cannot be read: Expected `array`, got `int`")


OTHERS = "alert_rule_test: [{eval_time: 1m, alertname: Other}]"


@pytest.mark.parametrize("name", list(GOOD))
def test_a_missing_test_is_reported(root: Path, name: str) -> None:
    (root / TESTS).write_text(written({name: None}))

    assert problems(root) == [f"{TESTS}: {name}: there is no test of that name; write it"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("quiet", GOOD["fires"]),
        ("quiet", OTHERS),
        ("fires", GOOD["quiet"]),
        ("fires", "alert_rule_test: [{eval_time: 1m, alertname: PodsWait, exp_alerts: [{exp_labels: {tier: a}}]}]"),
        ("fires", GOOD["fires"].replace("PodsWait", "Other")),
        ("resolves", GOOD["fires"]),
        ("resolves", GOOD["quiet"]),
        ("resolves", GOOD["resolves"].replace("1h", "0")),
        ("missing", OTHERS),
    ],
)
def test_a_test_that_does_not_show_what_its_name_says_is_reported(root: Path, name: str, content: str) -> None:
    (root / TESTS).write_text(written({name: content}))

    [problem] = problems(root)

    assert problem.startswith(f"{TESTS}: {name}: it does not show what it is called after; ")


def test_a_firing_alert_may_be_shown_by_its_alerts_series(root: Path) -> None:
    samples = """[{labels: 'ALERTS{alertname="PodsWait", alertstate="firing"}', value: 1}]"""
    seen = f"promql_expr_test: [{{eval_time: 1m, expr: ALERTS, exp_samples: {samples}}}]"
    (root / TESTS).write_text(
        written({"resolves": f"{seen}, alert_rule_test: [{{eval_time: 2m, alertname: PodsWait}}]"})
    )

    assert problems(root) == []


@pytest.mark.parametrize(
    ("fed", "is_missing"),
    [
        ('pods{tier="critical"}', False),
        ('pods{tier="low"}', True),
        ('pods{tier="critical", tenant="test"}', True),
        ("share_ratio", True),
    ],
)
def test_the_missing_test_must_omit_a_series_that_the_alert_reads(
    root: Path,
    fed: str,
    is_missing: bool,  # noqa: FBT001 - pytest calls by name
) -> None:
    record = {"record": "tier:pods", "expr": 'sum by (cluster, tier) (pods{tier=~"crit.*", tenant!="test"})'}
    (root / TESTS).write_text(written({"missing": f"{series(fed)}, {GOOD['missing']}"}))

    found = problems(root, record, alert("tier:pods > 5"))

    fed_all = 'missing: it feeds all that the alert reads; leave out one of pods{tier=~"crit.*",tenant!="test"}'
    assert found == ([] if is_missing else [f"{TESTS}: {fed_all}"])
