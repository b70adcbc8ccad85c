"""A wait is charged for no more than the cluster could ever give."""

from fractions import Fraction
from typing import TYPE_CHECKING, Final

import pytest
from msgspec import structs

from gputally.accounting.totals.total import Total
from gputally.answers.uncreated_workloads import workload_sentence
from gputally.catalog.aggregator.pending_metrics import UNCREATED_GPU_SECONDS, UNCREATED_GPUS
from gputally.catalog.aggregator.wait_metrics import NOT_CHARGED, REASON_GPUS, REASON_PODS
from gputally.catalog.metric import Row
from gputally.model.kube.kinds import Kind
from gputally.model.kube.workloads import Job
from gputally.model.rules import ChargeCeilings, Rules
from gputally.model.units import to_datetime
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.refusals import parallel_job
from tests.core.replay import Replay
from tests.property.price_lists import book_of
from tests.told import Prices

if TYPE_CHECKING:
    from gputally.accounting.fleet.snapshot import Snapshot
    from gputally.catalog.metric import Metric

H100 = {"nvidia.com/gpu.product": "H100"}
NODE = NodeForm(name="n1", gpus=8, labels=H100)
HUGE: Final = 10**9
MOST_PARALLEL: Final = 2**31 - 1
SMALL = Rules(waits=ChargeCeilings(gpus=64, gpus_per_pod=16), known_tiers=("train",))
HIGHER = Rules(waits=ChargeCeilings(gpus=10**10, gpus_per_pod=10**10), known_tiers=("train",))
BOOK = book_of(Prices(models={"H100": ((0, Fraction(3)),)}, tiers={}))


def new_replay(*nodes: NodeForm, rules: Rules = SMALL) -> Replay:
    replay = Replay(rules=rules, book=BOOK)
    replay.relist(Kind.NODES, *nodes, at=1, since=None)
    replay.relist(Kind.PODS, at=2, since=None)
    replay.relist_objects(Kind.JOBS, at=3)
    return replay


def suspend(replay: Replay, name: str = "train", *, at: int, gpus: int = 8, pods: int = 4, model: str = "") -> None:
    found = parallel_job(name, gpus=gpus, parallelism=pods, queue="q", suspend=True, model=model)
    replay.see_object(Kind.JOBS, found, at=at)


def value_of(replay: Replay, metric: "Metric[Snapshot]", at: int, **labels: str) -> float:
    rows = (row for row in metric.rows(replay.scrape(at)) if isinstance(row, Row))
    found = [(dict(zip(metric.labels, row.labels, strict=True)), row.value) for row in rows]
    return sum(value for named, value in found if labels.items() <= named.items())


def uncreated(replay: Replay, at: int) -> int:
    replay.scrape(at)
    return int(sum(replay.gpu_seconds(at, Total.UNCREATED).values()))


def pending(replay: Replay, at: int) -> int:
    replay.scrape(at)
    return int(sum(replay.gpu_seconds(at, Total.PENDING).values()))


def test_a_suspended_job_of_any_size_leaves_an_honest_one_its_gpu_seconds() -> None:
    replay = new_replay(NODE, rules=Rules(known_tiers=("train",)))
    suspend(replay, "hostile", at=10, gpus=HUGE, pods=MOST_PARALLEL)
    suspend(replay, "wide", at=10, gpus=8, pods=MOST_PARALLEL)
    before = value_of(replay, UNCREATED_GPU_SECONDS, 15)
    suspend(replay, "honest", at=15)
    honest = value_of(replay, UNCREATED_GPU_SECONDS, 17) - before - 2 * 10_000

    assert before == 5 * 10_000
    assert honest == 2 * 32


def test_a_pending_pod_that_no_node_could_ever_hold_costs_nothing_and_is_counted() -> None:
    replay = new_replay(NODE)
    replay.see(PodForm(name="huge", gpus=HUGE, node_selector=H100, created=10), at=10)

    assert pending(replay, 22) == 0
    assert replay.money(22, Total.PENDING_COST) == {}
    assert value_of(replay, NOT_CHARGED, 23, reason="impossible") == 1
    assert value_of(replay, REASON_PODS, 24) == 1
    assert value_of(replay, REASON_GPUS, 25) == 0


@pytest.mark.parametrize(("gpus", "seconds"), [(16, 16 * 10), (17, 0)])
def test_the_ceiling_of_a_pod_counts_where_no_node_was_larger(gpus: int, seconds: int) -> None:
    replay = new_replay(NODE)
    replay.see(PodForm(name="b", gpus=gpus, created=10), at=10)

    assert pending(replay, 20) == seconds


def test_a_node_that_is_larger_than_the_ceiling_is_remembered_after_it_is_gone_and_after_a_restart() -> None:
    large = NodeForm(name="n2", gpus=32, labels=H100)
    replay = new_replay(NODE, large)
    replay.lose(large, at=5)
    replay.flush()
    replay.restart()
    replay.relist(Kind.NODES, NODE, at=6, since=5)
    replay.relist(Kind.PODS, at=7, since=5)
    replay.see(PodForm(name="b", gpus=32, node_selector=H100, created=10), at=10)
    replay.see(PodForm(name="c", gpus=32, node_selector={"nvidia.com/gpu.product": "L4"}, created=10), at=10)

    assert pending(replay, 20) == 10 * 32
    assert value_of(replay, NOT_CHARGED, 21, reason="impossible") == 1


def test_a_pod_of_shares_that_fits_on_a_node_is_possible() -> None:
    labels = H100 | {"nvidia.com/gpu.count": "6", "nvidia.com/gpu.replicas": "50"}
    replay = new_replay(NodeForm(name="n1", gpus=300, labels=labels))
    replay.see(PodForm(name="b", gpus=300, created=10), at=10)
    replay.see(PodForm(name="c", gpus=301, created=10), at=10)

    assert pending(replay, 20) == 300 * 10
    assert value_of(replay, NOT_CHARGED, 21, reason="impossible") == 1


def test_a_workload_is_charged_for_as_many_pods_whatever_label_it_selects_the_nodes_by() -> None:
    labels = {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    replay = new_replay(*(NodeForm(name=f"n{number}", gpus=8, labels=H100 | labels) for number in range(12)))
    replay.see_object(Kind.JOBS, selecting(labels), at=10)

    assert value_of(replay, UNCREATED_GPUS, 10) == 96


def selecting(labels: dict[str, str]) -> Job:
    """A suspended Job of any number of pods."""
    job = parallel_job("train", queue="q", suspend=True, parallelism=MOST_PARALLEL)
    template = job.spec.template
    template = structs.replace(template, spec=structs.replace(template.spec, node_selector=labels))
    return structs.replace(job, spec=structs.replace(job.spec, template=template))


def test_a_workload_is_charged_for_as_many_pods_as_the_cluster_ever_had_gpus_for() -> None:
    replay = new_replay(*(NodeForm(name=f"n{number}", gpus=8, labels=H100) for number in range(12)))
    suspend(replay, at=10, gpus=7, pods=MOST_PARALLEL, model="H100")

    assert value_of(replay, UNCREATED_GPUS, 10) == 91
    assert uncreated(replay, 20) == 10 * 91
    assert value_of(replay, NOT_CHARGED, 20, reason="above_limit") == MOST_PARALLEL - 13
    assert sum(replay.money(20, Total.UNCREATED_COST).values()) == Fraction(3 * 10 * 91, 3600)


def test_the_workloads_of_a_namespace_are_charged_for_a_hundred_of_the_largest_ones_together() -> None:
    replay = new_replay(NODE)
    for number in range(110):
        suspend(replay, f"job-{number}", at=10, gpus=8, pods=8)

    assert value_of(replay, UNCREATED_GPUS, 10) == 100 * 64
    assert value_of(replay, NOT_CHARGED, 11, reason="namespace_limit") == 10 * 8
    assert value_of(replay, NOT_CHARGED, 11, reason="above_limit") == 0


def test_a_workload_is_charged_once_others_of_its_namespace_are_not() -> None:
    replay = new_replay(NODE)
    for number in range(101):
        suspend(replay, f"job-{number}", at=10, gpus=8, pods=8)
    replay.lose_object(Kind.JOBS, parallel_job("job-3", queue="q", suspend=True), at=20)
    replay.scrape(100)

    assert value_of(replay, UNCREATED_GPUS, 101) == 100 * 64
    assert value_of(replay, NOT_CHARGED, 102) == 0


@pytest.mark.parametrize("order", [1, -1], ids=["as-they-came", "as-another-list-has-them"])
def test_of_the_workloads_of_a_namespace_the_oldest_are_charged_in_whatever_order_they_are_listed(order: int) -> None:
    replay = new_replay(NODE)
    for number in range(105)[::order]:
        see_suspended(replay, f"job-{number:03}", since=100 + number // 2, at=200)
    found = replay.fleet.uncreated.workloads(at_us=replay.fleet.now_us).described()

    charged = sorted(each.owner.reference.name for each in found if each.charged)
    assert charged == [f"job-{number:03}" for number in range(100)]
    text = workload_sentence(next(each for each in found if not each.charged))
    assert "charged for 0 of 8 pods: older workloads of its namespace are charged for a hundred times as many" in text

    replay.lose_object(Kind.JOBS, parallel_job("job-003", queue="q", suspend=True), at=210)
    see_suspended(replay, "job-200", since=90, at=220)
    found = replay.fleet.uncreated.workloads(at_us=replay.fleet.now_us).described()
    charged = sorted(each.owner.reference.name for each in found if each.charged)
    assert charged == [f"job-{number:03}" for number in (*range(3), *range(4, 100), 200)]
    assert value_of(replay, UNCREATED_GPUS, 230) == 100 * 64


def see_suspended(replay: Replay, name: str, *, since: int, at: int) -> None:
    """A Job of 8 pods with 8 GPUs, suspended since then."""
    job = parallel_job(name, gpus=8, parallelism=8, queue="q", suspend=True)
    meta = structs.replace(job.metadata, creation_timestamp=to_datetime(us(since)))
    replay.see_object(Kind.JOBS, structs.replace(job, metadata=meta), at=at)


def test_a_wait_beyond_a_lowered_ceiling_is_not_charged_after_the_restart() -> None:
    replay = new_replay(NODE, rules=HIGHER)
    replay.see(PodForm(name="huge", gpus=HUGE, created=10), PodForm(name="b", gpus=2, created=10), at=10)
    before = pending(replay, 16)
    replay = restarted(replay, at=16)
    replay.see(PodForm(name="huge", gpus=HUGE, created=10), PodForm(name="b", gpus=2, created=10), at=3000)

    assert pending(replay, 3010) - before == (3010 - 16) * 2


def restarted(replay: Replay, *, at: int) -> Replay:
    """With a lower ceiling."""
    replay.flush()
    found = Replay(rules=SMALL, book=BOOK)
    found.memory = replay.memory
    found.restart()
    found.ledger = replay.ledger
    found.relist(Kind.NODES, NODE, at=at, since=at)
    return found
