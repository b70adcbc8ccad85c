"""The recommended Alertmanager configuration: the receiver of each alert, and the inhibitions."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
import yaml

from hack.build import AMTOOL
from hack.promtool import ROOT
from monitoring.config import read

FILE = ROOT / "examples" / "alertmanager.yaml"
ROUTES: Mapping[str, Any] = yaml.safe_load(FILE.read_text())
RECEIVER = {"critical": "pager", "warning": "tickets", "info": "log"}
SEVERITIES = {name: str(terms["severity"]) for name, terms in read().alerts.items()}
INHIBITIONS: Sequence[Mapping[str, Any]] = ROUTES["inhibit_rules"]
NO_NODE = 'instance=""'
REMEDY = "amtool is not built: run `python -m hack.build amtool`, which needs Go, or put one on the PATH"


@pytest.fixture(scope="module")
def amtool() -> str:
    found = str(AMTOOL.path) if AMTOOL.path.exists() else shutil.which("amtool")
    if found is None:
        pytest.skip(REMEDY)
    return found


def output(amtool: str, *arguments: str) -> str:
    result = subprocess.run(
        [amtool, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
    return result.stdout.strip()


def matched(matchers: Sequence[str]) -> set[str]:
    """The alerts that the matchers of `alertname` match; `instance=""` excludes the alerts with a node."""
    found = set(SEVERITIES)
    for matcher in matchers:
        if matcher == NO_NODE:
            found -= {alert for alert in found if "instance" in labels_of(alert)}
            continue
        parts = re.fullmatch(r'alertname(=~|!=|=)"(.*)"', matcher)
        assert parts, matcher
        names = {name for name in SEVERITIES if re.fullmatch(parts[2], name)}
        found = found - names if parts[1] == "!=" else found & names
    return found


def words() -> Iterator[str]:
    """The alert names and patterns in the file."""
    for name in re.findall(r'alertname(?:=~|!=|=)"(.*?)"', FILE.read_text()):
        yield from name.split("|")


def labels_of(alert: str) -> set[str]:
    """The labels that the alert's promtool test expects."""
    tests = yaml.safe_load((ROOT / "tests" / "promtool" / f"{alert}.yaml").read_text())["tests"]
    [fires] = [test for test in tests if test["name"] == "fires"]
    return {
        label
        for look in fires["alert_rule_test"]
        for each in look.get("exp_alerts", ())
        for label in each["exp_labels"]
    }


def test_the_configuration_loads(amtool: str) -> None:
    assert "SUCCESS" in output(amtool, "check-config", str(FILE))


@pytest.mark.parametrize("alert", SEVERITIES)
def test_an_alert_is_routed_by_its_severity(amtool: str, alert: str) -> None:
    labels = (f"alertname={alert}", f"severity={SEVERITIES[alert]}", "cluster=c1", "instance=n1")

    found = output(amtool, "config", "routes", "test", f"--config.file={FILE}", *labels)

    assert found == RECEIVER[SEVERITIES[alert]]


def test_an_unknown_alert_is_routed_to_tickets(amtool: str) -> None:
    assert output(amtool, "config", "routes", "test", f"--config.file={FILE}", "alertname=Else") == "tickets"


def test_pending_inference_pages_once_per_cluster() -> None:
    [pages] = [route for route in ROUTES["route"]["routes"] if route["receiver"] == "pager"]

    assert "group_by" not in pages
    assert ROUTES["route"]["group_by"] == ["alertname", "cluster"]


def test_alerts_about_a_node_are_grouped_by_node_and_alerts_about_a_pod_by_namespace() -> None:
    def grouped_by(label: str) -> set[str]:
        [route] = [route for route in ROUTES["route"]["routes"] if label in route.get("group_by", ())]
        return matched(route["matchers"])

    by_namespace = {alert for alert in SEVERITIES if "namespace" in labels_of(alert)}

    assert grouped_by("namespace") == by_namespace
    assert grouped_by("instance") == {alert for alert in SEVERITIES if "instance" in labels_of(alert)} - by_namespace


def test_a_cluster_alert_does_not_inhibit_alerts_about_a_node() -> None:
    of_nodes = {alert for alert in SEVERITIES if "instance" in labels_of(alert)}

    for rule in INHIBITIONS:
        assert "instance" in rule["equal"] or not matched(rule["target_matchers"]) & of_nodes, rule


@pytest.mark.parametrize("word", sorted(set(words())))
def test_every_named_alert_exists(word: str) -> None:
    assert [name for name in SEVERITIES if re.fullmatch(word, name)] != []


@pytest.mark.parametrize("rule", INHIBITIONS, ids=lambda rule: str(rule["source_matchers"][0]))
def test_alerts_in_an_inhibition_have_its_equal_labels(rule: Mapping[str, Any]) -> None:
    sources, targets = matched(rule["source_matchers"]), matched(rule["target_matchers"])

    assert sources
    assert targets
    for alert in sources | targets:
        assert set(rule["equal"]) <= labels_of(alert), alert


def test_no_alert_inhibits_itself_and_no_two_inhibit_each_other() -> None:
    pairs = {
        (source, target)
        for rule in INHIBITIONS
        for source in matched(rule["source_matchers"])
        for target in matched(rule["target_matchers"])
    }

    assert [pair for pair in pairs if (pair[1], pair[0]) in pairs] == []


def test_critical_alerts_are_never_inhibited() -> None:
    inhibited = {alert for rule in INHIBITIONS for alert in matched(rule["target_matchers"])}

    assert [alert for alert in inhibited if SEVERITIES[alert] == "critical"] == []
