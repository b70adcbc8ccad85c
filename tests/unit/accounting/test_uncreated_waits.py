"""What the time of pods that do not exist is charged to, and at what price."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import pytest

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.prices.book import Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.kube.workloads import Job
from gputally.model.observation import Bookmark
from gputally.model.price import Basis
from gputally.model.rules import Rules
from gputally.model.units import GPU_SECOND
from gputally.model.verdicts import Reason
from tests.core.manifests import GPU_NAME, NodeForm, PodForm, us
from tests.core.policies import quota
from tests.core.refusals import exceeded, failed_create, parallel_job
from tests.core.replay import Replay
from tests.property.price_lists import book_of
from tests.told import Prices
from tests.unit.accounting.test_uncreated import ADMISSION, EVENTS, HOUR, owner, refused_job, resolved, workload

WATCHED = Rules(watched=(EVENTS,))
CUSTOM = {"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1"}
BY_POOL = book_of(Prices(models={}, tiers={}, labels={"pool": ((0, Fraction(3600)),)}))
NODE = NodeForm(name="n1", gpus=8, labels={"nvidia.com/gpu.product": "H100", "pool": "a"})
"""Whoever selects its model pays by its pool."""
GPUS = 32
"""Of four pods with eight GPUs."""


def charged(of: Replay, *, at: float) -> dict[tuple[str, ...], int]:
    """GPU-seconds by exported tier and cause."""
    of.scrape(at)
    return {labels: int(value) for labels, value in of.gpu_seconds(at, Total.UNCREATED).items()}


def test_missing_pods_are_charged_to_the_quota_from_their_refusal_on_and_are_not_pending() -> None:
    found = refused_job(at=60)

    assert charged(found, at=160) == {("train", "quota"): 100 * GPUS}
    assert found.true(Total.PENDING, 160) == {}
    [wait] = found.memory.uncreated_waits.values()
    assert (wait.reason, wait.tenant, wait.name, wait.pods) == (Reason.QUOTA_NEVER, "ml", "train", 4)


def test_a_refusal_by_admission_is_charged_to_other() -> None:
    assert charged(refused_job(ADMISSION, at=60), at=70) == {("train", "other"): 10 * GPUS}


def test_pods_that_come_to_exist_are_charged_no_longer() -> None:
    found = refused_job(at=60)
    found.see_object(Kind.JOBS, parallel_job(active=3), at=70)
    found.scrape(71)
    found.see_object(Kind.JOBS, parallel_job(active=4), at=80)

    assert charged(found, at=100) == {("train", "quota"): 10 * GPUS + 10 * 8}


def test_pods_that_are_refused_again_are_not_charged_for_the_time_in_which_they_existed() -> None:
    found = refused_job(at=60)
    found.see_object(Kind.JOBS, parallel_job(active=4), at=70)
    found.scrape(75)
    found.see_object(Kind.JOBS, parallel_job(), at=500)
    found.see_object(EVENTS, failed_create(exceeded(), at=60), at=510)  # the same Event is updated

    assert charged(found, at=520) == {("train", "quota"): 10 * GPUS + 10 * GPUS}


def test_a_refusal_that_is_not_repeated_is_charged_for_as_long_as_its_controller_may_wait() -> None:
    found = refused_job(at=60)
    found.scrape(65)

    assert charged(found, at=3000) == {("train", "quota"): 1200 * GPUS}
    found.see_object(EVENTS, failed_create(exceeded(), at=3000), at=3000)
    assert charged(found, at=3100) == {("train", "quota"): 3040 * GPUS}  # so it was refused all the time


def test_a_new_process_continues_a_wait_once_it_is_confirmed() -> None:
    found = refused_job(at=60)
    found.scrape(100)
    found.restart()
    assert charged(found, at=200) == {("train", "quota"): 40 * GPUS}

    found.relist_objects(Kind.JOBS, parallel_job(), at=210)
    assert charged(found, at=210) == {("train", "quota"): 40 * GPUS}
    found.see_object(EVENTS, failed_create(exceeded(), at=60), at=220)
    assert charged(found, at=260) == {("train", "quota"): 200 * GPUS}


@pytest.mark.parametrize("jobs", [(), (parallel_job(active=4),)])
def test_a_wait_that_ended_while_no_process_ran_is_not_continued(jobs: tuple[Job, ...]) -> None:
    found = refused_job(at=60)
    found.scrape(100)
    found.restart()
    found.relist_objects(Kind.JOBS, *jobs, at=200)
    found.see_object(EVENTS, failed_create(exceeded(), at=60), at=205)

    assert charged(found, at=300) == {("train", "quota"): 40 * GPUS}


def following(rules: Rules = WATCHED) -> Replay:
    """The pods are listed."""
    found = Replay(rules=rules)
    found.relist(Kind.PODS, at=10, since=None)
    return found


def resume(to: Replay, *pods: PodForm, at: int) -> None:
    """The watch of pods goes on after a restart, and is complete."""
    to.see(*pods, at=at, since=100)
    to.apply(Bookmark(kind=Kind.PODS, version="2000", at_us=us(at), since_us=us(at)))


def refuse(to: Replay, message: str = "", *, at: int = 60, seen: float | None = None) -> None:
    """An Event of a workload whose object is not read."""
    event = failed_create(message or exceeded(), name="web", at=at, **CUSTOM)
    to.see_object(EVENTS, event, at=at if seen is None else seen)


def pod_of_web(at: int, name: str = "web-0") -> PodForm:
    """A pod that the workload got then."""
    by = CUSTOM | {"name": "web", "uid": "uid-web", "controller": True}
    return PodForm(name=name, gpus=8, created=at, scheduled=at, node="n", owners=(by,))


def test_a_workload_that_is_not_read_is_charged_the_pod_that_its_quota_refuses() -> None:
    found = following()
    refuse(found)

    assert charged(found, at=160) == {("unknown", "quota"): 100 * 8}
    assert found.gpu_seconds(160, Total.UNCREATED_AT_LEAST) == {("unknown", "quota"): 100 * 8}
    assert found.gpu_seconds(160, Total.UNCREATED_UNPRICED) == {("unknown", "quota"): 100 * 8}
    [wait] = found.memory.uncreated_waits.values()
    assert (wait.tier, wait.tenant, wait.pods, wait.is_at_least) == ("unknown", "ml", 1, True)


def test_what_is_known_exactly_is_no_lower_bound() -> None:
    found = refused_job(at=60)

    assert charged(found, at=70) == {("train", "quota"): 10 * GPUS}
    assert found.gpu_seconds(70, Total.UNCREATED_AT_LEAST) == {}


def test_the_tier_is_that_of_the_only_class_that_the_quota_counts() -> None:
    found = following(Rules(watched=(EVENTS, Kind.QUOTAS), known_tiers=("train",)))
    found.see_object(Kind.QUOTAS, quota("training", {GPU_NAME: "6"}, classes=("train",)), at=50)
    refuse(found)

    assert charged(found, at=70) == {("train", "quota"): 80}


@pytest.mark.parametrize("message", [ADMISSION, exceeded(requested=0), exceeded(requested=257)])
def test_a_wait_for_an_unknown_number_of_gpus_is_counted_and_not_charged(message: str) -> None:
    found = following()
    refuse(found, message)

    assert charged(found, at=160) == {}
    assert not found.memory.uncreated_waits
    assert sum(uncharged(found).values()) == 1
    found.fleet.advance(us(60 + HOUR))
    assert sum(uncharged(found).values()) == 0


def test_a_workload_that_was_read_is_never_counted_as_uncharged() -> None:
    found = refused_job(ADMISSION)
    found.see_object(EVENTS, failed_create(ADMISSION, name="no-gpu-job"), at=60)
    found.see_object(EVENTS, failed_create(ADMISSION, name="web", kind="ReplicaSet", apiVersion="apps/v1"), at=60)

    assert uncharged(found) == {"quota_never": 0, "quota": 0, "refused": 0}


def uncharged(of: Replay) -> Mapping[str, int]:
    read = of.fleet.uncreated.read()
    assert read
    assert read.unmeasured_workloads is not None
    return read.unmeasured_workloads


def test_a_pod_of_the_workload_ends_its_wait_until_another_one_is_refused() -> None:
    found = following()
    refuse(found)
    found.see(pod_of_web(70), at=70)
    assert charged(found, at=100) == {("unknown", "quota"): 80}

    refuse(found, at=110)
    assert charged(found, at=120) == {("unknown", "quota"): 160}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_pod_that_was_created_before_the_refusal_does_not_end_it(is_first: bool) -> None:  # noqa: FBT001 - pytest calls by name
    found = following()
    if is_first:
        found.see(pod_of_web(50), at=60)
    refuse(found)
    found.see(pod_of_web(50), at=61)

    assert charged(found, at=70) == {("unknown", "quota"): 80}


def test_an_old_event_of_a_workload_that_got_a_pod_since_charges_nothing() -> None:
    found = following()
    found.see(pod_of_web(70), at=70)
    refuse(found, at=60, seen=80)

    assert charged(found, at=100) == {}


def test_a_new_process_continues_a_lower_bound_unless_a_pod_came_meanwhile() -> None:
    for pods, expected in (((), 160 * 8), ((pod_of_web(150),), 40 * 8)):
        found = following()
        refuse(found)
        found.scrape(100)
        found.restart()
        refuse(found, at=60, seen=200)
        assert charged(found, at=205) == {("unknown", "quota"): 40 * 8}
        resume(found, *pods, at=210)
        assert charged(found, at=220) == {("unknown", "quota"): expected}

    refuse(found, at=230)
    assert charged(found, at=240) == {("unknown", "quota"): 50 * 8}  # nothing for the time since the pod


def test_a_lower_bound_does_not_replace_what_a_job_itself_may_confirm() -> None:
    found = refused_job(at=60)
    found.scrape(100)
    found.restart()
    found.see_object(EVENTS, failed_create(exceeded(), at=60), at=200)
    assert charged(found, at=210) == {("train", "quota"): 40 * GPUS}

    found.relist_objects(Kind.JOBS, parallel_job(), at=220)
    assert charged(found, at=230) == {("train", "quota"): 170 * GPUS}


def test_an_event_of_a_job_charges_nothing_once_the_jobs_are_listed() -> None:
    found = following()
    found.see_object(EVENTS, failed_create(exceeded()), at=60)
    assert charged(found, at=61) == {("unknown", "quota"): 8}
    found.relist_objects(Kind.JOBS, at=62)

    assert charged(found, at=100) == {("unknown", "quota"): 16}


def test_a_workload_that_can_be_read_after_all_is_charged_for_all_of_its_pods_from_then_on() -> None:
    found = following()
    replica_set = owner("ReplicaSet")
    found.see_object(EVENTS, failed_create(exceeded(), name="web", kind="ReplicaSet", apiVersion="apps/v1"), at=60)
    resolved(found, replica_set, None, at=60, is_known=False)
    resolved(found, replica_set, workload(replicas=2), at=70)

    assert charged(found, at=80) == {("unknown", "quota"): 80, ("other", "quota"): 160}
    assert found.gpu_seconds(80, Total.UNCREATED_AT_LEAST) == {("unknown", "quota"): 80}


def test_a_workload_is_charged_from_when_its_object_was_read() -> None:
    found = Replay(rules=WATCHED)
    found.see_object(EVENTS, failed_create(ADMISSION, name="web", kind="ReplicaSet", apiVersion="apps/v1"), at=60)
    resolved(found, owner("ReplicaSet"), workload(replicas=2), at=70)

    assert charged(found, at=80) == {("other", "other"): 160}


def test_the_cost_is_that_of_the_model_that_the_pods_select() -> None:
    rule = PriceRule(
        id="h100",
        criteria=(Criterion(trait=Trait.GPU_MODEL, globs=("h100",)),),
        prices=(DatedPrice(from_us=0, per_gpu_hour=Decimal(36)),),
    )
    found = Replay(rules=WATCHED, book=PriceBook(currency="EUR", basis=Basis.GPU, rules=(rule,)))
    found.relist(Kind.NODES, at=50, since=None)
    for name, model in (("train", "H100"), ("other", "")):
        found.see_object(Kind.JOBS, parallel_job(name, model=model), at=60)
        found.see_object(EVENTS, failed_create(exceeded(), name=name), at=60)
    found.scrape(60)

    assert found.money(160, Total.UNCREATED_COST) == {("other", "quota", "EUR"): GPUS}
    assert found.gpu_seconds(160, Total.UNCREATED_UNPRICED) == {("other", "quota"): 100 * GPUS}
    assert found.gpu_seconds(160, Total.UNCREATED) == {("other", "quota"): 200 * GPUS}


def test_a_new_price_counts_from_its_time_on_between_two_rounds_too() -> None:
    by_pool = Prices(models={}, tiers={}, labels={"pool": ((0, Fraction(3600)), (104, Fraction(7200)))})
    found = Replay(rules=Rules(known_tiers=("train",)), book=book_of(by_pool))
    found.relist(Kind.NODES, NODE, at=1, since=None)
    found.relist_objects(Kind.JOBS, parallel_job(gpus=4, queue="q", suspend=True, model="H100"), at=4)
    found.scrape(100)
    found.scrape(104)

    assert found.money(110, Total.UNCREATED_COST) == {("train", "quota", "EUR"): 16 * (100 + 2 * 6)}


def test_a_process_without_the_feature_charges_nothing_more() -> None:
    found = refused_job(at=60)
    found.scrape(100)
    off = Fleet(rules=found.rules, book=None, saved=found.memory.saved(), explains_waits=False)
    off.advance(us(500))
    off.drain()

    [(labels, series)] = off.totals.truth(Total.UNCREATED)
    assert (labels, series.at(us(500))) == (("train", "quota"), 40 * GPUS * GPU_SECOND)


def test_after_a_restart_the_last_prices_count_until_the_nodes_are_listed() -> None:
    found = Replay(rules=Rules(known_tiers=("train",)), book=BY_POOL, opened=0)
    found.relist(Kind.NODES, NODE, at=1, since=None)
    job = parallel_job(gpus=4, queue="q", suspend=True, model="H100")
    found.relist_objects(Kind.JOBS, job, at=2)
    found.scrape(100)

    found.restart(at=160)
    found.relist_objects(Kind.JOBS, job, at=161)
    found.scrape(165)
    [shown] = found.fleet.uncreated.workloads(at_us=found.fleet.now_us).described()
    assert shown.prices.lowest, "what is shown is what is charged"
    found.relist(Kind.NODES, NODE, at=170, since=100)
    found.scrape(200)

    assert found.gpu_seconds(200, Total.UNCREATED) == {("train", "quota"): 16 * 198}
    assert found.money(200, Total.UNCREATED_COST) == {("train", "quota", "EUR"): 16 * 198}
    assert found.gpu_seconds(200, Total.UNCREATED_UNPRICED) == {}


def test_a_job_that_is_seen_before_the_nodes_costs_the_same_for_all_of_its_time() -> None:
    found = Replay(rules=Rules(known_tiers=("train",)), book=BY_POOL, opened=0)
    found.relist_objects(Kind.JOBS, parallel_job(gpus=4, queue="q", suspend=True, model="H100"), at=2)
    found.scrape(5)
    assert found.gpu_seconds(5, Total.UNCREATED_UNPRICED) == {("train", "quota"): 16 * 3}

    found.relist(Kind.NODES, NODE, at=10, since=None)
    found.scrape(20)
    assert found.money(20, Total.UNCREATED_COST) == {("train", "quota", "EUR"): 16 * 18}
    assert found.gpu_seconds(20, Total.UNCREATED_UNPRICED) == {}
