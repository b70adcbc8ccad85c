"""The recommended routes: who hears of which alert, and of which not while another says more."""

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
REMEDY = "amtool is not built: run `python -m hack.build amtool`, which needs Go, or put one on the PATH"


@pytest.fixture(scope="module")
def amtool() -> str:
    found = str(AMTOOL.path) if AMTOOL.path.exists() else shutil.which("amtool")
    if found is None:
        pytest.skip(REMEDY)
    return found


def output(amtool: str, *arguments: str) -> str:
    ended = subprocess.run(
        [amtool, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout.strip()


def meant(matchers: Sequence[str]) -> set[str]:
    """The alerts that the matchers of `alertname` let pass."""
    found = set(SEVERITIES)
    for matcher in matchers:
        parts = re.fullmatch(r'alertname(=~|!=|=)"(.*)"', matcher)
        assert parts, matcher
        names = {name for name in SEVERITIES if re.fullmatch(parts[2], name)}
        found = found - names if parts[1] == "!=" else found & names
    return found


def words() -> Iterator[str]:
    """What the file says of names of alerts, word by word."""
    for name in re.findall(r'alertname(?:=~|!=|=)"(.*?)"', FILE.read_text()):
        yield from name.split("|")


def labels_of(alert: str) -> set[str]:
    """Those that its test expects it to have."""
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
def test_an_alert_goes_where_its_severity_says(amtool: str, alert: str) -> None:
    labels = (f"alertname={alert}", f"severity={SEVERITIES[alert]}", "cluster=c1", "instance=n1")

    found = output(amtool, "config", "routes", "test", f"--config.file={FILE}", *labels)

    assert found == RECEIVER[SEVERITIES[alert]]


def test_what_nobody_thought_of_is_a_ticket(amtool: str) -> None:
    assert output(amtool, "config", "routes", "test", f"--config.file={FILE}", "alertname=Else") == "tickets"


def test_inference_that_waits_pages_once_for_all_tiers_and_tenants_of_a_cluster() -> None:
    [pages] = [route for route in ROUTES["route"]["routes"] if route["receiver"] == "pager"]

    assert "group_by" not in pages
    assert ROUTES["route"]["group_by"] == ["alertname", "cluster"]


def test_every_alert_that_tells_of_a_node_is_grouped_by_it() -> None:
    [by_node] = [route for route in ROUTES["route"]["routes"] if "instance" in route.get("group_by", ())]

    assert meant(by_node["matchers"]) == {alert for alert in SEVERITIES if "instance" in labels_of(alert)}


@pytest.mark.parametrize("word", sorted(set(words())))
def test_every_alert_that_is_named_exists(word: str) -> None:
    assert [name for name in SEVERITIES if re.fullmatch(word, name)] != []


@pytest.mark.parametrize("rule", INHIBITIONS, ids=lambda rule: str(rule["source_matchers"][0]))
def test_alerts_that_must_agree_in_a_label_have_it(rule: Mapping[str, Any]) -> None:
    sources, targets = meant(rule["source_matchers"]), meant(rule["target_matchers"])

    assert sources
    assert targets
    for alert in sources | targets:
        assert set(rule["equal"]) <= labels_of(alert), alert


def test_no_alert_is_held_back_by_itself_or_by_one_that_it_holds_back() -> None:
    pairs = {
        (source, target)
        for rule in INHIBITIONS
        for source in meant(rule["source_matchers"])
        for target in meant(rule["target_matchers"])
    }

    assert [pair for pair in pairs if (pair[1], pair[0]) in pairs] == []


def test_what_pages_is_never_held_back() -> None:
    held_back = {alert for rule in INHIBITIONS for alert in meant(rule["target_matchers"])}

    assert [alert for alert in held_back if SEVERITIES[alert] == "critical"] == []
