"""The GPUs that an imported pod requested, by the series of its containers."""

from decimal import Decimal
from pathlib import Path

from tests.fakes.kube_state import TARGET, KubeState
from tests.fakes.prometheus_history import FakePrometheus
from tests.unit.commands.pod_history import SCRAPES, T0, hours, imported, life, rows
from tests.unit.commands.sample import Runner


def test_init_containers_and_sidecars_request_gpus_as_the_scheduler_counts_them(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    """Main 1, sidecar 2, init 5: while the init container runs 7, then 3."""
    pod = life("a", gpus=1)
    state.pod(pod)
    ids = {"namespace": "red", "pod": "pod-a", "uid": "a"}
    for container, gpus in (("proxy", 2), ("fetch", 5)):
        labels = ids | {"container": container, "resource": "nvidia_com_gpu"}
        state.constant("kube_pod_init_container_resource_requests", labels, gpus, since=pod.created, until=pod.removed)
    sidecar = ids | {"container": "proxy", "restart_policy": "Always"}
    state.constant("kube_pod_init_container_info", sidecar, since=pod.created, until=pod.removed)

    imported(run, history, ledger)

    assert hours(run, ledger) == {"red": Decimal("6.998056")}  # 3599 s x 7


def test_a_share_of_hami_is_rejected(run: Runner, history: FakePrometheus, state: KubeState, ledger: Path) -> None:
    pod = life("a", gpus=1)
    state.pod(pod)
    labels = {"namespace": "red", "pod": "pod-a", "uid": "a", "container": "main", "resource": "nvidia_com_gpumem"}
    state.constant("kube_pod_container_resource_requests", labels, 3000, since=pod.created, until=pod.removed)

    status, _, err = imported(run, history, ledger)

    assert status == 9
    assert "nvidia.com/gpumem needs the GPUs' memory, which kube-state-metrics lacks" in err


def test_without_honor_labels_the_renamed_ones_are_read(run: Runner, history: FakePrometheus, ledger: Path) -> None:
    state = KubeState(history, SCRAPES, TARGET | {"namespace": "monitoring", "container": "kube-state-metrics"})
    pod = life("a")
    state.pod(pod)
    ids = {"exported_namespace": "red", "pod": "pod-b", "uid": "b"}
    state.constant("kube_pod_info", ids | {"node": "n1"}, since=pod.created, until=pod.removed)
    for name, value in (("kube_pod_status_scheduled_time", T0 + 3605), ("kube_pod_completion_time", T0 + 7205)):
        state.constant(name, ids, value, since=pod.created, until=pod.removed)
    state.constant("kube_pod_status_phase", ids | {"phase": "Succeeded"}, since=T0 + 7205, until=pod.removed)
    requests = ids | {"exported_container": "main", "resource": "nvidia_com_gpu"}
    state.constant("kube_pod_container_resource_requests", requests, 2, since=pod.created, until=pod.removed)

    imported(run, history, ledger)

    assert hours(run, ledger, "namespace")["red"] == Decimal(2)


def test_a_mig_slice_has_its_name_and_share(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(life("a", resource="nvidia_com_mig_1g_5gb", gpus=7))
    state.constant("kube_node_status_capacity", {"node": "n1", "resource": "nvidia_com_mig_1g_5gb"}, 7)

    imported(run, history, ledger)

    [row] = rows(run, ledger, "resource")
    assert (row["resource"], row["gpu_hours"]) == (
        "nvidia.com/mig-1g.5gb",
        "0.999721",
    )  # 7 of 7 slices, each rounded down
