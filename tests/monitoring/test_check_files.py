"""Runs `python -m monitoring.check` on files."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from monitoring.check.__main__ import main
from monitoring.check.loaded import load
from tests.monitoring.documents import FILE, RULES, Json, alert, board, panel, rules, target

OBJECT = "alerts/generated/prometheusrules/small.yaml"


def write(root: Path, files: Mapping[str, object]) -> None:
    """Write the files as JSON, which is also YAML; text is written unchanged."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


def test_dashboards_and_rules_are_read_from_their_files(tmp_path: Path) -> None:
    prometheus_rule = {"kind": "PrometheusRule", "spec": rules(alert())}
    write(tmp_path, {FILE: board(), RULES: rules(alert()), OBJECT: prometheus_rule})

    found = load(tmp_path)

    assert found.problems == ()
    assert list(found.dashboards) == [FILE]
    assert [(file, rule.alert) for file, rule in found.alerts] == [(RULES, "PodsWait")]


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        (FILE, "{", f"{FILE}: cannot be read: "),
        (FILE, '{"panels": 3}', f"{FILE}: cannot be read: Expected `array`, got `int` - at `$.panels`; mend what"),
        (RULES, "groups: [", f"{RULES}: cannot be read: "),
        (RULES, "groups: [{name: a, rules: [{alert: A}]}]", f"{RULES}: cannot be read: Object missing required field"),
        (RULES, "groups: []\nmore: 1", f"{RULES}: cannot be read: Object contains unknown field `more`"),
    ],
)
def test_an_unreadable_file_is_reported(tmp_path: Path, file: str, content: str, problem: str) -> None:
    write(tmp_path, {file: content})

    [found] = load(tmp_path).problems

    assert str(found).startswith(problem)


@pytest.mark.parametrize("prometheus_rule", [None, {"spec": rules()}, {"spec": None}, "[]"])
def test_a_prometheus_rule_with_other_rules_is_reported(tmp_path: Path, prometheus_rule: Json | str | None) -> None:
    write(tmp_path, {RULES: rules(alert()), **({OBJECT: prometheus_rule} if prometheus_rule else {})})

    assert list(map(str, load(tmp_path).problems)) == [f"{OBJECT}: holds other rules than {RULES}; run make generate"]


def test_every_problem_is_printed_and_the_check_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expr = "rate(gputally_pending_pods[5m])"
    write(tmp_path, {FILE: board(panel(target(expr), unit="cps")), RULES: yaml.safe_dump(rules(alert("sum(")))})

    assert main([], tmp_path) == 1

    shown = capsys.readouterr().out
    assert f"{OBJECT}: holds other rules than {RULES}; run make generate\n" in shown
    assert f"{RULES}: alert \"PodsWait\": no PromQL: unclosed left parenthesis; mend 'sum('\n" in shown
    assert f'{FILE}: panel "Pods": gputally_pending_pods is no counter, but stands in rate()' in shown
    assert f'{FILE}: panel "Pods": gputally_pending_pods is not narrowed by job; ' in shown
    assert f'{RULES}: alert "PodsWait": it has no runbook; ' in shown
    assert shown.splitlines()[-1].startswith("1 queries of 1 dashboards and 1 rule files, 1 alerts: ")


def test_a_single_gate_runs_only_its_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {FILE: board(panel(target("rate(gputally_pending_pods[5m])"), description=""))})

    assert main(["alerts"], tmp_path) == 0
    assert capsys.readouterr().out.endswith("0 alerts: no problems\n")
    assert main(["dashboards"], tmp_path) == 1
    assert "is no counter" not in capsys.readouterr().out


def test_an_unknown_gate_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["panels"], tmp_path)

    assert "no gate is called panels; there are metrics, queries, dashboards, alerts" in capsys.readouterr().err
