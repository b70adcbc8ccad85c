"""What Prometheus scrapes: by the jobs of examples/prometheus.yml, told of our processes as if they were pods."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import yaml

from tests.cluster.manifests import Json
from tests.monitoring_e2e.agents import Measured
from tests.prometheus.server import targets

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "prometheus.yml"
AGGREGATOR: Final = "gputally"
AGENTS: Final = "gputally-agents"
_META: Final = "__meta_kubernetes_pod_"


def aggregator(url: str) -> Json:
    """As recommended: its `instance` stays when another address takes over."""
    return _job(AGGREGATOR, [_pod(url, "aggregator", node="")])


def aggregator_by_address(url: str) -> Json:
    """The same without that advice: the `instance` is the address."""
    job = aggregator(url)
    return job | {
        "relabel_configs": [each for each in job["relabel_configs"] if each.get("target_label") != "instance"]
    }


def agents(measured: Iterable[Measured]) -> Json:
    """As recommended: the node is the `instance`, and the names of the measured pods are left as they are."""
    return _job(AGENTS, [_pod(each.url, "agent", node=each.node) for each in measured])


def _job(name: str, pods: Iterable[Json]) -> Json:
    """The example's job without what only a cluster has: discovery, and addresses on well-known ports."""
    [job] = [each for each in yaml.safe_load(EXAMPLE.read_text())["scrape_configs"] if each["job_name"] == name]
    relabel = [each for each in job["relabel_configs"] if each.get("target_label") != "__address__"]
    kept = {key: value for key, value in job.items() if key != "kubernetes_sd_configs"}
    return kept | {"relabel_configs": relabel, "static_configs": list(pods)}


def _pod(url: str, component: str, *, node: str) -> Json:
    """As discovery would tell of it."""
    told = {
        "label_app_kubernetes_io_name": "gputally",
        "label_app_kubernetes_io_component": component,
        "phase": "Running",
        "node_name": node,
    }
    return {**targets(url), "labels": {f"{_META}{name}": value for name, value in told.items()}}
