"""The real Prometheus Operator on the real control plane, and the Prometheus configuration that it generates."""

import base64
import gzip
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from hack.build import OPERATOR
from tests.chart.schemas import operator_crds
from tests.cluster.api import Api
from tests.cluster.component import Component
from tests.cluster.control_plane import LOOPBACK, ControlPlane, free_ports
from tests.cluster.manifests import Json
from tests.cluster.objects import Items, condition
from tests.prometheus.server import Configuration, targets
from tests.prometheus.tools import built

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = ("podmonitors", "probes", "prometheuses", "prometheusrules", "scrapeconfigs", "servicemonitors")
RELEASE = {"release": "kube-prometheus-stack"}
"""The label by which the Prometheus of kube-prometheus-stack selects monitors and rules."""
NAME = "stack"


@dataclass(frozen=True, kw_only=True)
class Generated(Configuration):
    """A configuration that the operator generated, with other targets."""

    document: Mapping[str, object]

    def rendered(self) -> str:
        """See `Configuration.rendered`."""
        return yaml.safe_dump(dict(self.document))


async def define_kinds(api: Api) -> None:
    """Make the API server serve the kinds of the operator."""
    for name in KINDS:
        definition = (operator_crds() / f"monitoring.coreos.com_{name}.yaml").read_text()
        await api.create_once(yaml.load(definition, yaml.CSafeLoader))
        await api.wait_for(
            f"{DEFINITIONS}/{name}.monitoring.coreos.com",
            lambda found: bool(found) and condition(found or {}, "Established").get("status") == "True",
        )


@asynccontextmanager
async def operating(plane: ControlPlane, scratch: Path, place: str) -> AsyncIterator[None]:
    """The operator runs for one namespace."""
    [port] = free_ports(1)
    command = [built(OPERATOR), f"--web.listen-address={LOOPBACK}:{port}", f"--namespaces={place}"]
    kubeconfig = f"KUBECONFIG={plane.kubeconfig('admin')}"
    component = Component(
        ["/usr/bin/env", kubeconfig, *command], log=scratch / "operator.log", health=f"http://{LOOPBACK}:{port}/healthz"
    )
    component.launch()
    try:
        await component.ready()
        yield
    finally:
        component.kill()


async def generated(api: Api, place: str, *, groups: int) -> tuple[Json, dict[str, str]]:
    """The configuration and the rule files, once there are `groups`, for a Prometheus that selects RELEASE.

    What a pod's config-reloader fills in is filled in.
    """
    selector = {"matchLabels": RELEASE}
    spec = dict.fromkeys(("serviceMonitorSelector", "podMonitorSelector", "ruleSelector"), selector)
    meta = {"name": NAME, "namespace": place}
    kind = {"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus"}
    await api.create({**kind, "metadata": meta, "spec": {**spec, "scrapeInterval": "1s", "evaluationInterval": "1s"}})
    secret = f"/api/v1/namespaces/{place}/secrets/prometheus-{NAME}"
    found = await api.wait_for(secret, lambda found: len(_document(found).get("scrape_configs") or ()) == 2)
    maps = await api.wait_for_items(
        f"/api/v1/namespaces/{place}/configmaps", lambda items: len(_rules(items)) == groups, within=60
    )
    return _document(found), _rules(maps)


def _rules(maps: Items) -> dict[str, str]:
    """Rule files by name; the operator spreads them over several ConfigMaps."""
    ours = (each for each in maps if each["metadata"]["name"].startswith(f"prometheus-{NAME}-rulefiles-"))
    return {name: text for each in ours for name, text in (each.get("data") or {}).items()}


def _document(secret: Json | None) -> Json:
    packed = ((secret or {}).get("data") or {}).get("prometheus.yaml.gz", "")
    text = gzip.decompress(base64.b64decode(packed)).decode() if packed else "{}"
    document: Json = yaml.safe_load(text.replace("$(SHARD)", "0").replace("$(POD_NAME)", f"prometheus-{NAME}-0"))
    return document


def with_targets(document: Json, rules: Mapping[str, str], scratch: Path, **urls: Mapping[str, str]) -> Generated:
    """The configuration with processes of ours in place of discovered pods, and the rule files where it finds them.

    `urls` are by component, each with the name of its node.
    """
    folder = scratch / "rules"
    folder.mkdir()
    for name, text in rules.items():
        (folder / name).write_text(text)
    jobs = [_with_targets(job, urls) for job in document["scrape_configs"]]
    return Generated(document={**document, "rule_files": [f"{folder}/*.yaml"], "scrape_configs": jobs})


def _with_targets(job: Json, urls: Mapping[str, Mapping[str, str]]) -> Json:
    [component] = [name for name in urls if job["job_name"].endswith(f"gputally-{name}/0")]
    found = [_as_discovered(component, url, node) for url, node in urls[component].items()]
    return {name: value for name, value in job.items() if name != "kubernetes_sd_configs"} | {"static_configs": found}


def _as_discovered(component: str, url: str, node: str) -> Json:
    """A target as discovery finds a pod and its Service."""
    labels = {"component": component, "instance": "gputally", "name": "gputally"}
    meta = {
        "pod_name": f"gputally-{component}-0",
        "pod_phase": "Running",
        "pod_container_name": component,
        "pod_container_port_name": "metrics",
        "pod_node_name": node,
        "endpoint_port_name": "metrics",
        "service_name": f"gputally-{component}",
    }
    for owner in ("pod", "service"):
        meta |= {f"{owner}_label_app_kubernetes_io_{name}": value for name, value in labels.items()}
        meta |= {f"{owner}_labelpresent_app_kubernetes_io_{name}": "true" for name in labels}
    return {**targets(url), "labels": {f"__meta_kubernetes_{name}": value for name, value in meta.items()}}
