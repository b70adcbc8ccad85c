"""The declared alerts: each has its settings, its name follows the conventions, and it keeps the cluster label."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from monitoring.config import ConfigInvalid, read
from monitoring.generate import groups
from monitoring.rules import rule_file

CONFIG = read()
ALERTS = {alert.name: alert for group in groups().values() for alert in group.alerts}
RECORDINGS = {each.name: each for group in groups().values() for each in group.recordings}
EXPRESSIONS = {
    **{name: alert.expression for name, alert in ALERTS.items()},
    **{name: recording.expression for name, recording in RECORDINGS.items()},
}
GENERATED_TERMS = {"severity", "for"}
"""Settings that the generator uses itself."""


def named(text: str) -> set[str]:
    """The settings that the text refers to."""
    return set(re.findall(r"\$([a-z_]+)", text)) - {"labels", "value"}


def overlaid(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "ours.yaml"
    file.write_text(text)
    return file


def written(tmp_path: Path, text: str) -> Iterator[str]:
    """The expressions of all rules with a custom configuration."""
    config = read(overlaid(tmp_path, text))
    for group in groups().values():
        for each in yaml.safe_load(rule_file(group, config))["groups"]:
            yield from (rule["expr"] for rule in each["rules"])


def test_each_group_has_the_name_of_its_file() -> None:
    assert {name: group.name for name, group in groups().items()} == {name: name for name in groups()}


def test_the_configuration_names_exactly_the_existing_alerts() -> None:
    assert CONFIG.alerts.keys() == ALERTS.keys()


@pytest.mark.parametrize("name", ALERTS)
def test_every_setting_of_an_alert_is_used(name: str) -> None:
    alert = ALERTS[name]

    assert set(CONFIG.alerts[name]) - GENERATED_TERMS <= named(alert.expression + alert.description)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_has_a_severity_and_a_for_duration(name: str) -> None:
    assert CONFIG.alerts[name]["severity"] in ("critical", "warning", "info")
    assert "for" in CONFIG.alerts[name]


def test_only_urgent_alerts_are_critical() -> None:
    pages = {name for name, terms in CONFIG.alerts.items() if terms["severity"] == "critical"}

    assert pages == {"InferencePodsPending", "GputallyAbsent"}


def test_all_alerts_but_two_have_the_prefix_of_the_product() -> None:
    names = {alert.name for group in groups().values() for alert in group.alerts}

    assert {name for name in names if not name.startswith("Gputally")} == {"InferencePodsPending", "HighPreemptionRate"}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_aggregations_keep_the_cluster_label(name: str) -> None:
    kept = re.findall(r"\b(?:max|min|sum|count|avg)\b(?:\s+by \(([^)]*)\))?\s*\(", EXPRESSIONS[name])

    assert [labels for labels in kept if "cluster" not in labels.split(", ")] == []


WHOLE = {"job": "job_kind, job_name, tier, tenant", "node": "node, gpu_model, pool, state"}
"""What names several labels at once: a job or a node with all of its own."""


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_series_is_named_by_level_metric_and_operation(name: str) -> None:
    level, metric, operation = name.split(":")
    labels = ", ".join(WHOLE.get(each, each) for each in level.split("_"))

    assert f"by ({labels})" in EXPRESSIONS[name]
    assert metric.startswith("gputally_")
    assert operation


def test_a_custom_objective_is_used_in_all_expressions(tmp_path: Path) -> None:
    expressions = list(written(tmp_path, "objective: {seconds: 300, share: 0.999}"))

    assert sum('le=~"300([.]0)?"' in each for each in expressions) == 5 + 2
    assert sum("* 0.001" in each for each in expressions) == 2


def test_an_objective_that_is_not_a_bucket_bound_is_rejected(tmp_path: Path) -> None:
    file = overlaid(tmp_path, "objective: {seconds: 90}")

    with pytest.raises(ConfigInvalid, match=r"ours\.yaml: seconds: 90 is none of 1, 2, 5, 10, 30, 60, 120"):
        read(file)
