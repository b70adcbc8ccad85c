"""Monitors, rules and dashboards: when they are enabled, and what the values change."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.helm import CHART, IMAGED, NAMESPACE, Refused, objects, of_kind, run
from tests.chart.matrix import MONITORED
from tests.cluster.manifests import Json

OPERATOR = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}
BOARDS = "dashboards"


def made(values: object, scratch: Path, *, served: bool = True) -> list[Json]:
    """The rendered objects, for a cluster with or without (`served`) the operator's API."""
    file = scratch / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    apis = [f"--api-versions=monitoring.coreos.com/v1/{kind}" for kind in sorted(OPERATOR)] if served else []
    values_from = (*IMAGED, "--values", str(file))
    return objects(run("template", "gputally", str(CHART), "--namespace", NAMESPACE, *values_from, *apis))


def kinds(found: list[Json]) -> set[str]:
    """The monitoring kinds among the objects."""
    boards = {BOARDS for each in found if each["metadata"]["labels"].get("grafana_dashboard") == "1"}
    return {each["kind"] for each in found} & OPERATOR | boards


def alerts(found: list[Json]) -> dict[str, Any]:
    """All alerts by name."""
    groups = [group for each in found if each["kind"] == "PrometheusRule" for group in each["spec"]["groups"]]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def test_monitoring_is_enabled_by_default_if_the_cluster_has_the_operator(tmp_path: Path) -> None:
    assert kinds(made({}, tmp_path)) == {*OPERATOR, BOARDS}
    assert kinds(made({}, tmp_path, served=False)) == set()


@pytest.mark.parametrize(
    ("section", "kind"), [("podMonitor", "PodMonitor"), ("prometheusRule", "PrometheusRule"), ("dashboards", BOARDS)]
)
def test_each_part_can_be_forced_on_and_off(section: str, kind: str, tmp_path: Path) -> None:
    assert kinds(made({section: {"enabled": True}}, tmp_path, served=False)) == {kind}
    assert kinds(made({section: {"enabled": False}}, tmp_path)) == {*OPERATOR, BOARDS} - {kind}


@pytest.mark.parametrize(
    ("stated", "url"), [("https://gpus.example/", "https://gpus.example"), ("", "http://localhost:9836")]
)
def test_dashboards_link_to_the_aggregator_of_the_values(stated: str, url: str, tmp_path: Path) -> None:
    found = made({"dashboards": {"aggregator": stated}}, tmp_path)
    [text] = [
        text for each in found for name, text in each.get("data", {}).items() if name == "gputally-preemption.json"
    ]

    links = {address for address in re.findall(r'"url": "([^"]*)', text) if "/api/v1/" in address}
    assert len(links) > 3
    assert all(each.startswith(f"{url}/api/v1/") for each in links)


def service_monitors(values: Json, tmp_path: Path, *, served: bool = True) -> dict[str, str]:
    """The path that each ServiceMonitor scrapes."""
    found = [each for each in made(values, tmp_path, served=served) if each["kind"] == "ServiceMonitor"]
    return {each["metadata"]["name"]: each["spec"]["endpoints"][0]["path"] for each in found}


def test_the_monitors_of_fleet_and_pods_are_independent(tmp_path: Path) -> None:
    fleet, pods = {"gputally-aggregator": "/metrics"}, {"gputally-aggregator-pods": "/metrics/pods"}

    assert service_monitors({}, tmp_path) == fleet | pods
    assert service_monitors({"podMetricsMonitor": {"enabled": False}}, tmp_path) == fleet
    assert service_monitors({"serviceMonitor": {"enabled": False}}, tmp_path) == pods
    assert service_monitors({"podMetricsMonitor": {"enabled": True}}, tmp_path, served=False) == pods


def test_without_metrics_of_pods_none_are_served_or_scraped(tmp_path: Path) -> None:
    values = {"aggregator": {"podMetrics": False}}
    [container] = of_kind(made(values, tmp_path), "Deployment")["spec"]["template"]["spec"]["containers"]

    assert "--metrics.pods=off" in container["args"]
    assert set(service_monitors(values, tmp_path).values()) == {"/metrics"}


def test_the_cost_of_jobs_is_served_on_request(tmp_path: Path) -> None:
    values = {"aggregator": {"trainingJobCost": True}}
    [container] = of_kind(made(values, tmp_path), "Deployment")["spec"]["template"]["spec"]["containers"]

    assert "--metrics.training-job-cost=on" in container["args"]


def test_reasons_of_waits_are_turned_off_on_request(tmp_path: Path) -> None:
    values = {"aggregator": {"pendingReasons": False}}
    [container] = of_kind(made(values, tmp_path), "Deployment")["spec"]["template"]["spec"]["containers"]

    assert "--pending.reasons=off" in container["args"]


def test_one_value_labels_all_objects_that_prometheus_selects(tmp_path: Path) -> None:
    values = {"prometheusOperator": {"labels": {"release": "kps"}}, "podMonitor": {"additionalLabels": {"a": "b"}}}
    found = [each for each in made(values, tmp_path) if each["kind"] in OPERATOR]

    assert {each["metadata"]["labels"]["release"] for each in found} == {"kps"}
    assert {each["kind"] for each in found if each["metadata"]["labels"].get("a") == "b"} == {"PodMonitor"}


def test_dashboards_have_the_configured_folder(tmp_path: Path) -> None:
    values = {"dashboards": {"folder": "GPU", "annotations": {"a": "b"}}}
    boards = [each for each in made(values, tmp_path) if "grafana_dashboard" in each["metadata"]["labels"]]

    assert [each["metadata"]["annotations"] for each in boards] == [{"grafana_folder": "GPU", "a": "b"}] * 10
    assert "annotations" not in of_kind(made({}, tmp_path), "ConfigMap", "-fleet")["metadata"]


def test_alert_values_change_one_alert_and_no_other(tmp_path: Path) -> None:
    stated = {
        "InferencePodsPending": {"seconds": 300, "severity": "page", "for": "1m", "labels": {"team": "serving"}},
        "GputallyGpuPodsStarving": {"enabled": False},
        "GputallyTimeToScheduleBurnFast": {"burn": 20.5},
    }
    usual = alerts(made({}, tmp_path))
    found = alerts(made({"prometheusRule": {"alerts": stated}}, tmp_path))
    page = found.pop("InferencePodsPending")
    burn = found.pop("GputallyTimeToScheduleBurnFast")

    assert page["expr"].endswith(") > 300\n")
    assert (page["for"], page["labels"]) == ("1m", {"severity": "page", "team": "serving"})
    assert "> 20.5 * 0.01" in burn["expr"]
    assert "20.5 times too fast" in burn["annotations"]["description"]
    assert found == {name: usual[name] for name in usual.keys() - {*stated}}


def test_alert_values_can_name_pools_and_namespaces(tmp_path: Path) -> None:
    stated = {
        "GputallyGpuCapacityUnknown": {"spot_pools": "spot-.*|preemptible"},
        "GputallyIdlePod": {"allowed_namespaces": "standby-.+"},
        "GputallySpendAboveBaseline": {"baseline": "14d"},
    }
    found = alerts(made({"prometheusRule": {"alerts": stated}}, tmp_path))

    assert 'pool!~"spot-.*|preemptible"' in found["GputallyGpuCapacityUnknown"]["expr"]
    assert 'namespace!~"standby-.+"' in found["GputallyIdlePod"]["expr"]
    assert "offset 14d" in found["GputallySpendAboveBaseline"]["expr"]


def test_links_objective_and_labels_apply_to_all_alerts(tmp_path: Path) -> None:
    values = {
        "runbooks": "https://wiki.example/",
        "grafana": "https://grafana.example/",
        "objective": {"seconds": 300, "share": 0.999},
        "alertLabels": {"team": "gpu"},
    }
    objects = made({"prometheusRule": values}, tmp_path)
    found = alerts(objects)

    assert "--web.grafana-url=https://grafana.example/" in str(objects)
    assert len(found) > 30
    for name, rule in found.items():
        assert rule["labels"]["team"] == "gpu"
        assert rule["annotations"]["runbook_url"] == f"https://wiki.example/{name}.md"
        assert rule["annotations"]["dashboard_url"].startswith("https://grafana.example/d/gputally-")
    assert "* 0.001" in found["GputallyTimeToScheduleBurnFast"]["expr"]
    assert 'le=~"300([.]0)?"' in found["GputallyTimeToScheduleBurnFast"]["expr"]


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        ({"InferencePodsWaiting": {"seconds": 1}}, "there is no such alert; there are GputallyAbsent, "),
        (
            {"GputallyGpuLost": {"secs": 1}},
            r"alerts.GputallyGpuLost.secs: there is no such field; there are enabled, labels, for,",
        ),
        ({"GputallyGpuLost": {"for": "soon"}}, "for"),
        ({"GputallyGpuLost": {"severity": "page'"}}, "severity"),
        ({"GputallyGpuCapacityUnknown": {"spot_pools": 'a"} or up{b="'}}, "spot_pools"),
    ],
)
def test_an_error_in_alert_values_names_the_field(stated: object, problem: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=problem):
        made({"prometheusRule": {"alerts": stated}}, tmp_path)


def test_without_an_image_the_install_says_how_to_get_one() -> None:
    with pytest.raises(Refused, match=r"image.repository is empty(.|\n)*make image(.|\n)*--set image.repository="):
        run("template", "gputally", str(CHART))


def test_a_namespace_override_applies_to_all_objects_and_selectors(tmp_path: Path) -> None:
    found = made({**MONITORED, "namespaceOverride": "gpu"}, tmp_path)
    namespaces = {each["metadata"].get("namespace") for each in found if not each["kind"].startswith("Cluster")}
    subject = of_kind(found, "ClusterRoleBinding")["subjects"][0]

    assert namespaces == {"gpu", "monitoring"}
    assert subject["namespace"] == "gpu"
    assert of_kind(found, "ServiceMonitor", "-pods")["spec"]["namespaceSelector"] == {"matchNames": ["gpu"]}
    assert "--agents.namespace=gpu" in of_kind(found, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]


def test_agents_with_a_system_priority_class_have_the_quota_that_gke_requires(tmp_path: Path) -> None:
    quota = of_kind(made({}, tmp_path), "ResourceQuota")
    selector = quota["spec"]["scopeSelector"]["matchExpressions"]

    assert selector == [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]
    for values in ({"priorityClassName": "mine"}, {"resourceQuota": False}, {"enabled": False}):
        assert "ResourceQuota" not in {each["kind"] for each in made({"agent": values}, tmp_path)}


def test_the_aggregator_can_be_reached_through_an_ingress_or_a_gateway(tmp_path: Path) -> None:
    values = {
        "ingress": {"enabled": True, "className": "nginx", "hosts": ["gpu.example"], "tls": [{"secretName": "c"}]},
        "httpRoute": {"enabled": True, "parentRefs": [{"name": "edge"}], "hostnames": ["gpu.example"]},
    }
    found = made({"aggregator": values}, tmp_path)
    service = of_kind(found, "Service", "-aggregator")["metadata"]["name"]
    [path] = of_kind(found, "Ingress")["spec"]["rules"][0]["http"]["paths"]
    [route] = of_kind(found, "HTTPRoute")["spec"]["rules"]

    assert path["backend"]["service"] == {"name": service, "port": {"name": "metrics"}}
    assert route["backendRefs"] == [{"name": service, "port": 9836}]
    for missing in ({"ingress": {"enabled": True}}, {"httpRoute": {"enabled": True}}):
        with pytest.raises(Refused, match=r"hosts|parentRefs"):
            made({"aggregator": missing}, tmp_path)


def test_extra_containers_are_added_to_the_pods(tmp_path: Path) -> None:
    extra = [{"name": "proxy", "image": "proxy:1"}]
    found = made({"aggregator": {"extraContainers": extra}, "agent": {"extraContainers": extra}}, tmp_path)

    for kind in ("Deployment", "DaemonSet"):
        containers = of_kind(found, kind)["spec"]["template"]["spec"]["containers"]
        assert [each["name"] for each in containers][1:] == ["proxy"]
