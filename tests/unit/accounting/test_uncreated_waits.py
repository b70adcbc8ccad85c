"""What the time of pods that do not exist is charged to, and at what price."""

from decimal import Decimal

import pytest

from gputally.accounting.fleet import Fleet
from gputally.accounting.prices.price_book import Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.accounting.totals.totals import Total
from gputally.model.kube import Job, Kind
from gputally.model.placement.verdict import Reason
from gputally.model.price import Basis
from gputally.model.rules import Rules
from gputally.model.units import GPU_SECOND
from tests.core.manifests import us
from tests.core.refusals import exceeded, failed_create, parallel_job
from tests.core.replay import Replay
from tests.unit.accounting.test_uncreated import ADMISSION, EVENTS, owner, refused_job, resolved, workload

WATCHED = Rules(watched=(EVENTS,))
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


def test_an_event_alone_charges_nothing() -> None:
    found = Replay(rules=WATCHED)
    event = failed_create(exceeded(), name="web", kind="PyTorchJob", apiVersion="kubeflow.org/v1")
    found.see_object(EVENTS, event, at=60)

    assert charged(found, at=200) == {}
    assert not found.memory.uncreated_waits


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
    for name, model in (("train", "H100"), ("other", "")):
        found.see_object(Kind.JOBS, parallel_job(name, model=model), at=60)
        found.see_object(EVENTS, failed_create(exceeded(), name=name), at=60)
    found.scrape(60)

    assert found.money(160, Total.UNCREATED_COST) == {("other", "quota", "EUR"): GPUS}
    assert found.gpu_seconds(160, Total.UNCREATED_UNPRICED) == {("other", "quota"): 100 * GPUS}
    assert found.gpu_seconds(160, Total.UNCREATED) == {("other", "quota"): 200 * GPUS}


def test_a_process_without_the_feature_charges_nothing_more() -> None:
    found = refused_job(at=60)
    found.scrape(100)
    off = Fleet(rules=found.rules, book=None, saved=found.memory.saved(), explains_waits=False)
    off.advance(us(500))
    off.drain()

    [(labels, series)] = off.totals.truth(Total.UNCREATED)
    assert (labels, series.at(us(500))) == (("train", "quota"), 40 * GPUS * GPU_SECOND)
