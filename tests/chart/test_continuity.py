"""Series in a real Prometheus that scrapes as the chart's monitors say: they continue across pod replacements."""

import re
from pathlib import Path

import pytest

from tests.chart.helm import objects, of_kind, rendered
from tests.cluster.manifests import Json
from tests.prometheus.page import Page, served
from tests.prometheus.server import Configuration, PrometheusServer, targets

pytestmark = pytest.mark.e2e

# The operator relabels before the monitor does. Source: prometheus-operator pkg/prometheus/promcfg.go.
OF_THE_OPERATOR = [
    {"source_labels": [f"__meta_kubernetes_{source}"], "target_label": target}
    for source, target in (
        ("namespace", "namespace"),
        ("pod_container_name", "container"),
        ("pod_name", "pod"),
        ("service_name", "service"),
    )
]
WATCHED = "gputally_allocated_gpus"


def monitored(kind: str, page: Page, scratch: Path, **labels: str) -> Configuration:
    """The operator's scrape configuration for the chart's monitor, and a pod at `page` with discovered labels."""
    values = {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}, "clusterName": "west"}
    spec = of_kind(objects(rendered(values, scratch)), kind)["spec"]
    [endpoint] = spec.get("endpoints") or spec["podMetricsEndpoints"]
    discovered = {f"__meta_kubernetes_{name}": value for name, value in {"namespace": "gpu", **labels}.items()}
    job = {
        "job_name": kind,
        "honor_labels": endpoint["honorLabels"],
        "static_configs": [targets(page.url) | {"labels": discovered}],
        "relabel_configs": [*OF_THE_OPERATOR, *map(snake_case, endpoint["relabelings"])],
    }
    return Configuration(scrape_configs=[job])


def snake_case(relabeling: Json) -> Json:
    """The field names as in prometheus.yml."""
    return {re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name): value for name, value in relabeling.items()}


async def series(prometheus: PrometheusServer, name: str) -> list[Json]:
    """The labels of all series with that name, including ended ones."""
    answer = await prometheus.until(f"last_over_time({name}[1h])", lambda answer: answer.series)
    return [{label: value for label, value in each.labels.items() if label != "__name__"} for each in answer.series]


async def test_a_replaced_aggregator_continues_the_same_series(tmp_path: Path) -> None:
    async with served() as page:
        page.values[f'{WATCHED}{{tier="gold"}}'] = 1
        first = monitored("ServiceMonitor", page, tmp_path, pod_name="gputally-aggregator-a", service_name="gputally")
        second = monitored("ServiceMonitor", page, tmp_path, pod_name="gputally-aggregator-b", service_name="gputally")
        async with PrometheusServer(tmp_path / "prometheus", first) as prometheus:
            before = await series(prometheus, WATCHED)
            await prometheus.reload(second)
            page.values[f'{WATCHED}{{tier="gold"}}'] = 2
            await prometheus.until(WATCHED, lambda answer: answer.series and answer.value == 2)

            assert await series(prometheus, WATCHED) == before
            assert before == [
                {
                    "tier": "gold",
                    "instance": "gputally",
                    "cluster": "west",
                    "job": "ServiceMonitor",
                    "namespace": "gpu",
                    "service": "gputally",
                }
            ]


async def test_an_agents_series_name_its_node_and_the_pod_that_was_measured(tmp_path: Path) -> None:
    measured = "gputally_container_gpu_share_ratio"
    async with served() as page:
        page.values[f'{measured}{{namespace="ml",pod="train-0",container="main"}}'] = 1
        page.values["gputally_gpu_up"] = 1
        configuration = monitored(
            "PodMonitor",
            page,
            tmp_path,
            pod_name="gputally-agent-x",
            pod_container_name="agent",
            pod_node_name="node-7",
        )
        async with PrometheusServer(tmp_path / "prometheus", configuration) as prometheus:
            [held], [up] = await series(prometheus, measured), await series(prometheus, "gputally_gpu_up")

    common = {"instance": "node-7", "node": "node-7", "cluster": "west", "job": "PodMonitor"}
    assert held == common | {"namespace": "ml", "pod": "train-0", "container": "main"}
    assert up == common | {"namespace": "gpu"}
