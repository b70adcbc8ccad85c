"""No imported allocation outlives the machine that it is on, and more than a machine has is named."""

from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gputally.model.allocation import End
from tests.fakes.kube_state import TARGET, KubeState
from tests.fakes.prometheus_history import FakePrometheus
from tests.unit.commands.pod_history import (
    PRICES,
    SCRAPES,
    T0,
    allocations,
    hours,
    imported,
    life,
    rows,
    running,
    us,
    vanishing,
)
from tests.unit.commands.sample import Runner

THREE = T0 + 3 * 3600
A100, H100 = ({"label_nvidia_com_gpu_product": model} for model in ("A100", "H100"))
BEFORE, AFTER = ([at for at in SCRAPES if (at < THREE) is is_before] for is_before in (True, False))
"""The scrapes of a kube-state-metrics that moves at 3:00: until 10777, then at 10807 and 10837."""
MACHINE = "4c4c4544-0035-3510-8056-c7c04f505432"


@pytest.fixture
def state(history: FakePrometheus) -> KubeState:
    """Another node is always there: kube-state-metrics exports nodes."""
    found = KubeState(history, SCRAPES)
    found.node("other", H100, created=T0 - 86_400)
    return found


@pytest.mark.parametrize("created", [T0 - 86_400, None])
def test_an_allocation_ends_with_its_node_not_with_the_window(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path, created: int | None
) -> None:
    """The pod stays in the API for hours after its node, for instance with a finalizer."""
    state.node("n1", A100, until=THREE, created=created)
    state.pod(running("a"))

    status, out, err = imported(run, history, ledger)

    found = allocations(ledger)["a"]
    assert found.gap is not None
    assert [found.end_us, found.gap.from_us, found.gap.to_us] == us(10_777, 10_777, 10_807)
    assert (status, err, found.end_by, found.outcome) == (0, "", End.NODE, "lost")
    assert hours(run, ledger) == {"red": Decimal("15.937778")}
    assert "at most 0.0667 GPU-hours are missing; ends are known to 30 s" in out
    assert rows(run, ledger, "gpu_model")[0]["gpu_model"] == "A100"  # as last seen, though not in the last two hours


def test_a_node_of_eight_gpus_has_no_more_after_another_machine_took_its_name(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.node("n1", A100, until=THREE, created=T0 - 86_400)
    state.node("n1", H100, since=THREE, created=THREE)
    state.pod(running("a"))
    state.pod(running("b", created=10_850, scheduled=10_860, started=10_870))

    status, _, err = imported(run, history, ledger)

    assert (status, err) == (0, "")
    assert allocations(ledger)["a"].end_by is End.NODE
    assert hours(run, ledger) == {"red": Decimal("39.753333")}


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("replaced_at", [10_815, 18_000])
def test_each_machine_under_a_name_has_its_own_model_and_price(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path, order: tuple[str, str], replaced_at: int
) -> None:
    """Both in one part of the window, the second also across parts; whichever pod is read first."""
    first, second = order
    state.node("n1", A100, until=THREE, created=T0 - 86_400)
    state.node("n1", H100, since=T0 + replaced_at, created=T0 + replaced_at)
    state.pod(running(first, removed=11_000))
    at = replaced_at + 60
    state.pod(life(second, created=at, scheduled=at, started=at + 5, ended=at + 1800, removed=at + 1900))
    prices = ledger.with_name("prices.yaml")
    prices.write_text(PRICES)

    assert imported(run, history, ledger, "--prices.file", prices).status == 0

    found = {
        row["gpu_model"]: (Decimal(row["gpu_hours"]), Decimal(row["cost"])) for row in rows(run, ledger, "gpu_model")
    }
    assert {model: round(cost / hours, 4) for model, (hours, cost) in found.items()} == {"A100": 2, "H100": 4}
    assert found["H100"][0] == 4


def test_a_pod_that_is_still_shown_while_its_node_is_away_for_hours_has_the_model_of_the_node(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    """The part of the window that shows the pod last, from 2:00 to 4:00, has no sample of the node."""
    state.node("n1", A100, until=T0 + 7100, created=T0 - 86_400, machine=MACHINE)
    state.node("n1", A100, since=T0 + 14_500, created=T0 + 14_500, machine=MACHINE)
    state.pod(life("a", ended=7000, removed=10_000))

    imported(run, history, ledger)

    assert [row["gpu_model"] for row in rows(run, ledger, "gpu_model")] == ["A100"]


class Return(NamedTuple):
    """What a node that returns exports before and after, and whether its pods are still there."""

    before: dict[str, Any]
    after: dict[str, Any]
    keeps_pods: bool


RETURNS = (
    Return({"created": T0 - 9, "machine": MACHINE}, {"created": THREE + 600, "machine": MACHINE}, keeps_pods=True),
    Return({"created": T0 - 9, "machine": MACHINE}, {"created": THREE + 600, "machine": "another"}, keeps_pods=False),
    Return({"created": T0 - 9}, {"created": T0 - 9}, keeps_pods=True),
    Return({"created": T0 - 9}, {"created": THREE + 600}, keeps_pods=False),
    Return({"machine": MACHINE}, {"machine": MACHINE}, keeps_pods=True),
    Return({"machine": MACHINE}, {"machine": "another"}, keeps_pods=False),
    Return({}, {}, keeps_pods=False),
)


@pytest.mark.parametrize("node", RETURNS)
@pytest.mark.parametrize("pause_s", [600, 9000])
def test_a_pod_stays_on_a_node_that_returns_as_the_same_machine(
    run: Runner, history: FakePrometheus, ledger: Path, node: Return, pause_s: int
) -> None:
    """The other node shows that kube-state-metrics exports nodes."""
    state = KubeState(history, SCRAPES)
    state.node("other", H100)
    state.node("n1", A100, until=THREE, **node.before)
    state.node("n1", A100, since=THREE + pause_s, **node.after)
    state.pod(running("a"))

    imported(run, history, ledger)

    assert [allocations(ledger)["a"].end_us] == (us(None) if node.keeps_pods else us(10_777))


def test_scrapes_without_any_node_end_no_pod(run: Runner, history: FakePrometheus, ledger: Path) -> None:
    """kube-state-metrics restarted, and had listed the pods before the nodes."""
    state = KubeState(history, SCRAPES)
    for name in ("n1", "n2"):
        state.node(name, A100, until=THREE)
        state.node(name, A100, since=THREE + 60)
    state.pod(running("a"))
    state.pod(running("b", node="n2"))

    assert imported(run, history, ledger).err == ""
    assert [each.end_us for each in allocations(ledger).values()] == [None, None]


@pytest.mark.parametrize("left_s", [10_783, 10_810])
@pytest.mark.parametrize("others", [{"b": "other"}, {}])
def test_a_node_that_leaves_while_kube_state_metrics_moves_ends_its_pods_before_the_second_scrape_of_the_new_one(
    run: Runner, history: FakePrometheus, ledger: Path, left_s: int, others: dict[str, str]
) -> None:
    """The first scrape of the new one has no nodes; there may be no other node with GPU pods."""
    for instance, times, late in (("old", BEFORE, ()), ("new", AFTER, ("kube_node_",))):
        state = KubeState(history, times, TARGET | {"instance": instance}, late)
        state.node("other", H100, created=T0 - 9)
        state.node("n1", A100, until=T0 + left_s, created=T0 - 9)
        state.pod(running("a", removed=15_000))
        for uid, node in others.items():
            state.pod(running(uid, node=node))

    imported(run, history, ledger)

    found = allocations(ledger)
    gap = found["a"].gap
    assert gap is not None
    assert (found["a"].end_by, [gap.from_us, gap.to_us]) == (End.NODE, us(10_777, 10_837))
    assert {uid: each.end_us for uid, each in found.items() if uid != "a"} == dict.fromkeys(others)


def test_a_pod_that_ends_while_kube_state_metrics_moves_ends_before_the_second_scrape_of_the_new_one(
    run: Runner, history: FakePrometheus, ledger: Path
) -> None:
    """The first scrape of the new one has no pods."""
    for instance, times, late in (("old", BEFORE, ()), ("new", AFTER, ("kube_pod_",))):
        state = KubeState(history, times, TARGET | {"instance": instance}, late)
        state.pod(vanishing("a", 10_820))
        state.pod(running("b"))

    imported(run, history, ledger)

    found = allocations(ledger)
    assert found["a"].gap is not None
    assert [found["a"].gap.from_us, found["a"].gap.to_us, found["b"].end_us] == us(10_777, 10_837, None)


def test_a_node_that_leaves_after_the_last_scrape_of_pods_ends_none(
    run: Runner, history: FakePrometheus, ledger: Path
) -> None:
    """From then on, another kube-state-metrics shows nodes, but no pods: nobody knows whether the pod was there."""
    old, new = KubeState(history, BEFORE), KubeState(history, AFTER, TARGET | {"instance": "new"})
    old.pod(running("a"))
    for state in (old, new):
        state.node("n1", A100, until=T0 + 15_000, created=T0 - 9)

    imported(run, history, ledger)

    assert allocations(ledger)["a"].end_us is None


def test_nodes_that_are_no_longer_exported_end_no_pod_and_are_noted(
    run: Runner, history: FakePrometheus, ledger: Path
) -> None:
    state = KubeState(history, SCRAPES)
    state.node("n1", A100, until=THREE, created=T0 - 9)
    state.node("n2", A100, until=THREE, created=T0 - 9)
    state.pod(running("a"))
    state.pod(running("b", node="n2", created=15_000, scheduled=15_010, started=15_020))

    err = imported(run, history, ledger).err

    assert "no node has samples after 2025-10-01 02:59:37 UTC, but pods started" in err
    assert [each.end_us for each in allocations(ledger).values()] == [None, None]


def test_without_samples_of_nodes_pods_are_not_limited_and_that_is_noted(
    run: Runner, history: FakePrometheus, ledger: Path
) -> None:
    KubeState(history, SCRAPES).pod(running("a"))

    assert "no node has samples of kube_node_created or kube_node_status_capacity" in imported(run, history, ledger).err
    assert allocations(ledger)["a"].end_us is None


def test_a_node_without_samples_limits_no_pod_and_is_named(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.pod(running("a"))
    state.pod(running("b", node="other"))

    err = imported(run, history, ledger).err

    assert "1 nodes have no samples: pods may outlive them, or hold more than they have: n1" in err
    assert allocations(ledger)["a"].end_us is None


def test_an_earlier_end_of_the_pod_stays(run: Runner, history: FakePrometheus, state: KubeState, ledger: Path) -> None:
    state.node("n1", A100, until=THREE, created=T0 - 9)
    state.pod(life("done", gpus=1))
    state.pod(life("between", gpus=1, ended=10_790, removed=15_000))
    state.pod(vanishing("gone", 10_782, gpus=1))
    state.pod(life("late", gpus=1, ended=12_000, removed=15_000))

    imported(run, history, ledger)

    found = allocations(ledger)
    assert [found[uid].end_us for uid in ("done", "between", "gone", "late")] == us(7204, 10_790, 10_777, 10_777)
    assert found["between"].end_by is End.FINISHED
    assert [found["gone"].gap, found["late"].gap] == [found["gone"].gap] * 2


def test_more_than_a_node_has_is_named_with_the_node_and_the_time(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.node("n1", A100, created=T0 - 9)
    state.pod(running("a"))
    state.pod(running("b", created=10_850, scheduled=10_860, started=10_870))

    status, _, err = imported(run, history, ledger)

    assert status == 9
    assert "node n1: 16 nvidia.com/gpu allocated, but it has 8; 23.82 device-hours too many from " in err
    assert "from 2025-10-01 03:01:00 to 2025-10-01 05:59:37 UTC" in err


def test_a_pod_of_a_resource_that_its_node_never_offered_is_rejected(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.node("n1", A100, created=T0 - 9)
    state.pod(life("a", resource="amd_com_gpu"))

    status, _, err = imported(run, history, ledger)

    assert status == 9
    assert "pod red/pod-a (a), kube_node_status_capacity: the node n1 never offered amd.com/gpu" in err


def test_a_device_plugin_that_is_away_at_the_end_takes_no_gpus(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    state.node("n1", A100, until=T0 + 10_000, created=T0 - 9)
    state.node("n1", A100, gpus=0, since=T0 + 10_000, created=T0 - 9)
    state.pod(running("a", ended=None))

    imported(run, history, ledger)

    assert hours(run, ledger)["red"] > 38


def test_a_sidecar_ends_a_pod_between_the_last_active_and_the_first_terminal_scrape(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    """Main containers end at 7203, the sidecar at 7220."""
    state.node("n1", A100)
    state.pod(life("a", mains_ended=7203, ended=7220))

    out = imported(run, history, ledger).out

    found = allocations(ledger)["a"]
    assert found.gap is not None
    assert [found.end_us, found.gap.from_us, found.gap.to_us] == us(7207, 7207, 7237)
    assert (found.end_by, found.outcome) == (End.TERMINAL, "succeeded")
    assert "8.00 GPU-hours are of pods whose end was not observed, at most 0.0667 GPU-hours are missing" in out


def test_a_main_container_that_never_reported_its_end_outlasts_the_completion_time(
    run: Runner, history: FakePrometheus, state: KubeState, ledger: Path
) -> None:
    """So PodGC leaves a pod whose node was lost: one container had completed, another has no end."""
    state.node("n1", A100)
    state.pod(life("a", phase="Failed", mains_ended=5000, ended=7220, node="n1"))
    history.drop("kube_pod_init_container_info")
    ids = {"namespace": "red", "pod": "pod-a", "uid": "a"}
    for container, has_ended in (("main", 1), ("second", 0)):
        name, labels = "kube_pod_container_status_terminated", ids | {"container": container}
        state.constant(name, labels, has_ended, since=T0 + 5000, until=T0 + 10_000)

    imported(run, history, ledger)

    gap = allocations(ledger)["a"].gap
    assert gap is not None
    assert [gap.from_us, gap.to_us] == us(7207, 7237)
