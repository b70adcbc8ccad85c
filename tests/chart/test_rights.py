"""The permissions of the chart's pods: on the API server, on their nodes, and on the network."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from tests.chart.helm import CHART, container, objects, of_kind, pods, rendered
from tests.chart.matrix import MATRIX
from tests.cluster.manifests import Json

DOCUMENTED = yaml.safe_load_all((CHART.parents[1] / "deploy" / "rbac.yaml").read_text())


def agent(values: object, scratch: Path) -> Json:
    """The pod template of the agents."""
    template: Json = of_kind(objects(rendered(values, scratch)), "DaemonSet")["spec"]["template"]
    return template


def arguments(values: object, scratch: Path) -> list[str]:
    """The arguments of the aggregator."""
    deployment = of_kind(objects(rendered(values, scratch)), "Deployment")
    found: list[str] = container(deployment["spec"]["template"])["args"]
    return found


def rules(values: object, scratch: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = of_kind(objects(rendered(values, scratch)), "ClusterRole")["rules"]
    return found


def test_the_role_is_the_documented_one(tmp_path: Path) -> None:
    [documented] = [each["rules"] for each in DOCUMENTED if each["kind"] == "ClusterRole"]

    assert rules({}, tmp_path) == documented


def test_without_the_owner_walk_the_role_grants_only_list_and_watch(tmp_path: Path) -> None:
    granted = rules({"rbac": {"ownerWalk": False}}, tmp_path)

    assert {verb for rule in granted for verb in rule["verbs"]} == {"list", "watch"}


def test_watching_jobs_is_an_optional_right(tmp_path: Path) -> None:
    granted = rules({"rbac": {"jobs": False}}, tmp_path)

    assert [rule for rule in rules({}, tmp_path) if rule not in granted] == [
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list", "watch"]}
    ]


@pytest.mark.parametrize(
    ("value", "group", "resource"),
    [
        ("podDisruptionBudgets", "policy", "poddisruptionbudgets"),
        ("resourceQuotas", "", "resourcequotas"),
        ("kueueWorkloads", "kueue.x-k8s.io", "workloads"),
        ("volcanoPodGroups", "scheduling.volcano.sh", "podgroups"),
        ("coschedulingPodGroups", "scheduling.x-k8s.io", "podgroups"),
        ("corePodGroups", "scheduling.k8s.io", "podgroups"),
    ],
)
def test_an_optional_watch_gets_its_right_and_its_flag_together(
    value: str, group: str, resource: str, tmp_path: Path
) -> None:
    values = {"watch": {value: True}}

    assert [rule for rule in rules(values, tmp_path) if rule not in rules({}, tmp_path)] == [
        {"apiGroups": [group], "resources": [resource], "verbs": ["list", "watch"]}
    ]
    flag = f"--watch={resource}" + (f".{group}" if "." in group else "")
    assert [each for each in arguments(values, tmp_path) if each.startswith("--watch")] == [flag]


def test_watching_refused_pods_needs_no_right_but_that_on_events(tmp_path: Path) -> None:
    values = {"watch": {"failedCreates": True}}

    assert rules(values, tmp_path) == rules({}, tmp_path)
    assert "--watch=events/FailedCreate" in arguments(values, tmp_path)


def test_without_optional_watches_the_aggregator_gets_no_flag(tmp_path: Path) -> None:
    assert not [each for each in arguments({}, tmp_path) if each.startswith("--watch")]


def test_all_optional_watches_are_one_flag(tmp_path: Path) -> None:
    assert f"--watch={','.join(OPTIONAL_RESOURCES)}" in arguments(MATRIX["guarded"], tmp_path)


def test_the_role_is_bound_only_to_the_aggregators_service_account(tmp_path: Path) -> None:
    found = objects(rendered({}, tmp_path))
    binding = of_kind(found, "ClusterRoleBinding")

    assert binding["roleRef"]["name"] == of_kind(found, "ClusterRole")["metadata"]["name"]
    assert [each["name"] for each in binding["subjects"]] == [
        of_kind(found, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
    ]


@pytest.mark.parametrize("name", MATRIX)
def test_only_the_aggregator_mounts_a_service_account_token(name: str, tmp_path: Path) -> None:
    found = pods(objects(rendered(MATRIX[name], tmp_path)))

    mounted = [name for name, pod in found.items() if pod["spec"]["automountServiceAccountToken"]]
    assert [name.rpartition("-")[2] for name in mounted] == ["aggregator"]


def test_an_agent_mounts_one_host_folder_read_only(tmp_path: Path) -> None:
    pod = agent({}, tmp_path)

    assert [each["hostPath"]["path"] for each in pod["spec"]["volumes"] if "hostPath" in each] == [
        "/var/lib/kubelet/pod-resources"
    ]
    assert all(mount["readOnly"] for mount in container(pod)["volumeMounts"])
    assert not {"hostPID", "hostNetwork", "hostIPC"} & pod["spec"].keys()


@pytest.mark.parametrize("name", MATRIX)
def test_all_host_mounts_are_read_only(name: str, tmp_path: Path) -> None:
    for pod in pods(objects(rendered(MATRIX[name], tmp_path))).values():
        host = {each["name"] for each in pod["spec"]["volumes"] if "hostPath" in each}
        assert all(mount.get("readOnly") for mount in container(pod)["volumeMounts"] if mount["name"] in host)


def test_an_agent_has_no_capability(tmp_path: Path) -> None:
    context = container(agent({}, tmp_path))["securityContext"]

    assert context == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_only_mig_and_a_driver_path_need_more_privileges(tmp_path: Path) -> None:
    mig = container(agent(MATRIX["mig"], tmp_path))["securityContext"]
    gke = container(agent(MATRIX["gke"], tmp_path))["securityContext"]

    assert mig == {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}
    assert gke == {"readOnlyRootFilesystem": True, "privileged": True}


def test_network_policies_allow_only_needed_ingress_and_no_egress_of_agents(tmp_path: Path) -> None:
    found = [each for each in objects(rendered(MATRIX["guarded"], tmp_path)) if each["kind"] == "NetworkPolicy"]
    of_agents = of_kind(found, "NetworkPolicy", "-agent")["spec"]
    of_aggregator = of_kind(found, "NetworkPolicy", "-aggregator")["spec"]

    assert of_agents["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in of_agents
    [entry] = of_agents["ingress"]
    assert entry["from"][0]["podSelector"] == of_aggregator["podSelector"]
    assert len(entry["from"]) == 2
    assert egress_ports(of_aggregator) == [[53, 53], [443, 6443], [443], [9837]]
    assert "to" not in of_aggregator["egress"][2]


def test_the_network_policy_opens_the_ports_of_a_webhook_only_if_there_is_one(tmp_path: Path) -> None:
    def ports(*, secret: str) -> list[list[int]]:
        values = {
            "networkPolicy": {"enabled": True, "webhookPorts": [8443]},
            "aggregator": {"preemptionWebhookSecret": secret},
        }
        return egress_ports(of_kind(objects(rendered(values, tmp_path)), "NetworkPolicy", "-aggregator")["spec"])

    assert ports(secret="") == [[53, 53], [443, 6443], [9837]]
    assert ports(secret="owners") == [[53, 53], [443, 6443], [8443], [9837]]


def egress_ports(policy: Json) -> list[list[int]]:
    return [[port["port"] for port in rule["ports"]] for rule in policy["egress"]]
