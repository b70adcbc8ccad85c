"""The chart with the real Prometheus Operator: one value enables scraping, alerts and dashboards."""

import re
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

import pytest
import pytest_asyncio

from hack.pictures.variables import Window
from hack.prometheus import Prometheus
from monitoring.generate import groups
from tests.chart.helm import CHART, IMAGED, run
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import gpu_node, gpu_pod, namespace, priority_class
from tests.monitoring_e2e.gpus import WELL
from tests.monitoring_e2e.operator import NAME, define_kinds, generated, operating, with_targets
from tests.monitoring_e2e.panels import Boards
from tests.monitoring_e2e.scene import Scene, opened
from tests.prometheus.server import Configuration, PrometheusServer

pytestmark = pytest.mark.e2e

PLACE = "monitoring"
VALUES = ("--set", "prometheusOperator.labels.release=kube-prometheus-stack", "--set", "clusterName=west")


EMPTY = "kind: Configuration\n"
"""Each PriorityClass is a tier, and each namespace a tenant."""


class Monitored(NamedTuple):
    """A cluster that ran for some scrapes, and Helm's notes."""

    prometheus: Prometheus
    window: Window
    notes: str
    paged: Mapping[str, str]
    """The labels of the alert that pages."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def monitored(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Monitored]:
    """The installed chart, and Prometheus with the configuration that the operator generated."""
    scratch = tmp_path_factory.mktemp("operator")
    async with PrometheusServer(scratch / "prometheus", Configuration()) as prometheus:
        async with opened(control_plane, scratch, prometheus, gpus={"node-0": WELL}, configuration=EMPTY) as scene:
            notes = await _installed(scene)
            began = await _running(scene)
            paged = await _paged(scene)
            window = Window(began, await scene.steady(), step=1, scrape=1)
            await scene.stage.api.delete(f"/api/v1/namespaces/{PLACE}")
        yield Monitored(prometheus.api, window, notes, paged)


async def _installed(scene: Scene) -> str:
    api, access = scene.stage.api, ("--kubeconfig", str(scene.plane.kubeconfig("admin")), "--namespace", PLACE)
    await define_kinds(api)
    await api.create(namespace(PLACE))
    notes = run("install", "gputally", str(CHART), *IMAGED, *VALUES, *access)
    await scene.stage.product.start()
    async with operating(scene.plane, scene.scratch, PLACE):
        document, rules = await generated(api, PLACE, groups=len(groups()))
    aggregator, agents = {scene.stage.product.url: ""}, {each.url: each.node for each in scene.measured}
    await scene.prometheus.reload(with_targets(document, rules, scene.scratch, aggregator=aggregator, agent=agents))
    await scene.visible()
    return notes


async def _running(scene: Scene) -> int:
    """Run a serving pod on the node's GPU."""
    stage = scene.stage
    await stage.create(gpu_node("node-0", gpus=1, pool="day"), priority_class("prod-serving", 1000))
    await stage.create(gpu_pod("serve", "default", priorityClassName="prod-serving"))
    began = await scene.visible()
    await stage.running(1, tier="prod-serving")
    return began


async def _paged(scene: Scene) -> Mapping[str, str]:
    """Create a second serving pod, which finds no GPU, and wait until the alert pages with all values as installed."""
    await scene.stage.create(gpu_pod("serve-too", "default", priorityClassName="prod-serving"))
    query = 'ALERTS{alertname="InferencePodsPending", alertstate="firing"}'
    answer = await scene.prometheus.until(query, lambda answer: bool(answer.series), within=300)
    return answer.series[0].labels


def test_a_pending_serving_pod_pages_without_any_configuration(monitored: Monitored) -> None:
    shown = {name: monitored.paged[name] for name in ("severity", "tier", "tenant", "cluster")}

    assert shown == {"severity": "critical", "tier": "prod-serving", "tenant": "default", "cluster": "west"}


def test_the_notes_list_all_monitoring_parts_as_on(monitored: Monitored) -> None:
    for part in ("serviceMonitor", "podMonitor", "prometheusRule", "dashboards"):
        assert re.search(rf"^  {part} +on \(the cluster has ", monitored.notes, re.MULTILINE), part


def test_the_series_have_the_labels_that_dashboards_and_alerts_expect(monitored: Monitored) -> None:
    def labels(query: str) -> dict[str, str]:
        [series] = monitored.prometheus.query(query, at=monitored.window.end).series
        return dict(series.labels)

    assert labels("count by (cluster, instance, job, pod) (gputally_build_info)") == {
        "cluster": "west",
        "instance": "gputally",
        "job": "gputally-aggregator",
    }
    assert labels("count by (cluster, instance) (gputally_gpu_up)") == {"cluster": "west", "instance": "node-0"}


def test_every_alert_is_loaded_and_healthy(monitored: Monitored) -> None:
    loaded = monitored.prometheus.get("rules")["groups"]
    rules = [rule for group in loaded for rule in group["rules"]]

    assert {rule["name"] for rule in rules if rule["type"] == "alerting"} == {
        alert.name for group in groups().values() for alert in group.alerts
    }
    assert [rule["name"] for rule in rules if rule["health"] == "err"] == []


def test_every_dashboard_query_succeeds_and_every_dashboard_has_data(monitored: Monitored, dashboards: Boards) -> None:
    asked = list(dashboards.ask_all(monitored.prometheus, monitored.window))

    assert {each.key: each.frame.error for each in asked if each.frame.error} == {}
    shown = {each.board for each in asked if each.has_data}
    assert shown == {*dashboards.by_name} - {"jobs"}, "no Job ends in the scenario"
    assert NAME in str(monitored.prometheus.get("status/config"))
