"""Inhibition, grouping and routing of the recommended Alertmanager configuration."""

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import pytest
import yaml

from tests.cluster.manifests import Json
from tests.monitoring_e2e.notify import ROUTES, RULES, at_once
from tests.prometheus.alertmanager import AlertmanagerServer
from tests.prometheus.receiver import Receiver, receiving

pytestmark = pytest.mark.e2e

INHIBITIONS = yaml.safe_load(ROUTES.read_text())["inhibit_rules"]
SHARED = {"tier": "inference-standard", "victim_tier": "inference-standard"}
"""Labels other than the cluster that an inhibition requires to be equal."""
PLACE = {"instance": "node-1", "namespace": "ml", "pod": "notebook"}
"""The same, of alerts about a node or a pod; others lack them."""
NO_NODE = 'instance=""'


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def alertmanager(receiver: Receiver, tmp_path: Path) -> AsyncIterator[AlertmanagerServer]:
    async with AlertmanagerServer(tmp_path, ROUTES, replacements=at_once(receiver)) as alertmanager:
        yield alertmanager


@pytest.fixture(scope="module")
def severities() -> Mapping[str, str]:
    """The severity of every alert."""
    groups = [group for path in RULES.glob("*.yaml") for group in yaml.safe_load(path.read_text())["groups"]]
    rules = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    return {rule["alert"]: rule["labels"]["severity"] for rule in rules}


def test_every_inhibition_has_a_cause_and_an_effect(severities: Mapping[str, str]) -> None:
    ends = [named(severities, rule[f"{end}_matchers"]) for rule in INHIBITIONS for end in ("source", "target")]

    assert ends
    assert all(ends)


@pytest.mark.parametrize("rule", INHIBITIONS, ids=lambda rule: rule["source_matchers"][0])
async def test_a_cause_inhibits_its_effects_only_in_its_cluster(
    rule: Json, severities: Mapping[str, str], alertmanager: AlertmanagerServer, receiver: Receiver
) -> None:
    def alert(name: str, cluster: str) -> dict[str, str]:
        place = PLACE if "instance" in rule["equal"] else {}
        return {"alertname": name, "severity": severities[name], "cluster": cluster, **SHARED, **place}

    causes, effects = (named(severities, rule[f"{end}_matchers"]) for end in ("source", "target"))
    others = {(name, f"other-{number}") for number, name in enumerate(effects)}  # otherwise one could inhibit another
    ours = {(name, "ours") for name in causes}
    await alertmanager.send(*(alert(*each) for each in ours))
    await receiver.until(lambda receiver: notified(receiver) == ours)
    await alertmanager.send(*(alert(name, "ours") for name in effects), *(alert(*each) for each in others))
    await receiver.until(lambda receiver: notified(receiver) >= others)

    assert notified(receiver) == ours | others
    inhibited = {(each["labels"]["alertname"], each["labels"]["cluster"]) for each in await alertmanager.inhibited()}
    assert inhibited == {(name, "ours") for name in effects}


@pytest.mark.parametrize(
    ("cause", "labels"),
    [("GputallyAbsent", {}), ("GputallyGpuCapacityUnknown", {}), ("GputallyGpuLost", {"instance": "node-2"})],
)
async def test_alerts_about_another_node_are_not_inhibited(
    cause: str,
    labels: Mapping[str, str],
    severities: Mapping[str, str],
    alertmanager: AlertmanagerServer,
    receiver: Receiver,
) -> None:
    effects = ["GputallyAgentNotMeasuring", "GputallyIdlePod"]
    await alertmanager.send({"alertname": cause, "severity": severities[cause], "cluster": "ours", **labels})
    await receiver.until(lambda receiver: notified(receiver) == {(cause, "ours")})
    await alertmanager.send(
        *({"alertname": name, "severity": severities[name], "cluster": "ours", **PLACE} for name in effects)
    )
    await receiver.until(lambda receiver: notified(receiver) == {(name, "ours") for name in (cause, *effects)})

    assert await alertmanager.inhibited() == []


async def test_pending_inference_of_two_tiers_and_tenants_is_one_page(
    alertmanager: AlertmanagerServer, receiver: Receiver
) -> None:
    page = {"alertname": "InferencePodsPending", "severity": "critical", "cluster": "ours"}
    await alertmanager.send(
        {**page, "tier": "inference-critical", "tenant": "search"},
        {**page, "tier": "inference-standard", "tenant": "serving"},
    )
    await alertmanager.send({**page, "cluster": "theirs", "tier": "inference-standard", "tenant": "serving"})
    await receiver.until(lambda receiver: len(notified(receiver)) == 2)

    assert {each.receiver for each in receiver.notifications} == {"pager"}
    assert sorted(len(each.alerts) for each in receiver.notifications) == [1, 2]


def named(alerts: Iterable[str], matchers: Iterable[str]) -> list[str]:
    """The alerts that the matchers of `alertname` match."""
    of_name = [matcher for matcher in matchers if matcher != NO_NODE]
    return [name for name in alerts if all(matches_name(matcher, name) for matcher in of_name)]


def matches_name(matcher: str, name: str) -> bool:
    found = re.fullmatch(r'alertname(=~|!~|!=|=)"(.+)"', matcher)
    assert found, f"no matcher of alertname: {matcher}"
    operator, value = found.groups()
    matches = bool(re.fullmatch(value, name)) if "~" in operator else name == value
    return matches != operator.startswith("!")


def notified(receiver: Receiver) -> set[tuple[str, str]]:
    """Alert and cluster of all notifications."""
    labels = [alert["labels"] for each in receiver.notifications for alert in each.alerts]
    return {(each["alertname"], each["cluster"]) for each in labels}
