"""Scrape jobs of examples/prometheus.yml, with local processes as targets instead of pods."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import yaml

from tests.cluster.manifests import Json
from tests.monitoring_e2e.agents import Measured
from tests.prometheus.server import targets

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "prometheus.yml"
AGGREGATOR: Final = "gputally"
PODS: Final = "gputally-pods"
AGENTS: Final = "gputally-agents"
_META: Final = "__meta_kubernetes_pod_"


def aggregator(url: str) -> Json:
    """The recommended job: `instance` does not change with the address."""
    return _job(AGGREGATOR, [_pod(url, "aggregator", node="")])


def aggregator_by_address(url: str) -> Json:
    """The job without that recommendation: `instance` is the address."""
    job = aggregator(url)
    return job | {
        "relabel_configs": [each for each in job["relabel_configs"] if each.get("target_label") != "instance"]
    }


def pods(url: str) -> Json:
    """The recommended job for series by pod and by node."""
    return _job(PODS, [_pod(url, "aggregator", node="")])


def agents(measured: Iterable[Measured]) -> Json:
    """The recommended job: `instance` is the node, and the labels of measured pods are kept."""
    return _job(AGENTS, [_pod(each.url, "agent", node=each.node) for each in measured])


def _job(name: str, pods: Iterable[Json]) -> Json:
    """The example's job without cluster-only parts: discovery and well-known ports."""
    [job] = [each for each in yaml.safe_load(EXAMPLE.read_text())["scrape_configs"] if each["job_name"] == name]
    relabel = [each for each in job["relabel_configs"] if each.get("target_label") != "__address__"]
    kept = {key: value for key, value in job.items() if key != "kubernetes_sd_configs"}
    return kept | {"relabel_configs": relabel, "static_configs": list(pods)}


def _pod(url: str, component: str, *, node: str) -> Json:
    """A target with the labels of a discovered pod."""
    discovered = {
        "label_app_kubernetes_io_name": "gputally",
        "label_app_kubernetes_io_component": component,
        "phase": "Running",
        "node_name": node,
    }
    return {**targets(url), "labels": {f"{_META}{name}": value for name, value in discovered.items()}}
