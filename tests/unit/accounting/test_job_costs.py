"""The cost of jobs so far, as `training_job_cost_usd` exports it."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import pytest
from msgspec import structs

from gputally.accounting.fleet.active_pods import read_active
from gputally.accounting.jobs.cost import JobCosts
from gputally.catalog.aggregator.pod_metrics import JOB_COST, MOST_JOBS, view_of
from gputally.catalog.metric import Row
from gputally.model.kube.kinds import Limit
from gputally.model.units import COST_UNIT
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.property.price_lists import book_of
from tests.told import Prices

NODE = NodeForm(name="n1", labels={"nvidia.com/gpu.product": "A100"})
# One USD for a GPU-second.
BOOK = structs.replace(book_of(Prices(models={"A100": ((0, Fraction(3600)),)}, tiers={})), currency="USD")
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-train", "controller": True}
HOUR = 3600


def new_replay(currency: str = "USD") -> Replay:
    replay = Replay(book=structs.replace(BOOK, currency=currency))
    replay.fleet.jobs.costs.is_on = True
    replay.see(NODE, at=1)
    return replay


def pod(name: str, *, gpus: int = 1, owned: bool = True) -> PodForm:
    form = PodForm(name=name, created=10, node="n1", scheduled=10, started=10, gpus=gpus)
    return replace(form, owners=(OWNER,)) if owned else form


def ended(form: PodForm, at: int) -> PodForm:
    return replace(form, phase="Succeeded", finished=at, version=2)


def costs(replay: Replay, at: int, *, limit: int = MOST_JOBS) -> Mapping[tuple[str, ...], float]:
    found = read_active(replay.fleet, now_us=us(at)).costs
    assert found is not None
    return {labels: cost / COST_UNIT for labels, cost in found.top(limit).items()}


TRAIN = ("train", "ml", "A100", "ml")


def test_a_job_costs_what_its_existing_pods_and_those_that_are_gone_cost() -> None:
    replay = new_replay()
    replay.see(pod("a"), pod("b", gpus=2), at=10)
    assert costs(replay, 20) == {TRAIN: 10 + 20}

    replay.lose(ended(pod("a"), 40), at=41)
    assert costs(replay, 50) == {TRAIN: 30 + 80}


def test_a_restart_keeps_the_cost_of_pods_that_are_gone() -> None:
    replay = new_replay()
    replay.see(pod("a"), pod("b"), at=10)
    replay.lose(ended(pod("a"), 40), at=41)
    replay.flush()
    replay.restart()
    replay.fleet.jobs.costs.is_on = True

    assert costs(replay, 50) == {TRAIN: 30 + 40}


@pytest.mark.parametrize("is_deleted", [True, False])
def test_an_ended_job_is_shown_for_a_day(is_deleted: bool) -> None:  # noqa: FBT001 - a parameter of the test
    replay = new_replay()
    replay.see(pod("a"), at=10)
    replay.see(ended(pod("a"), 40), at=40)
    if is_deleted:
        replay.lose(ended(pod("a"), 40), at=40)

    assert costs(replay, 23 * HOUR) == {TRAIN: 30}
    assert costs(replay, 25 * HOUR) == {}
    assert len(replay.fleet.jobs.costs._records) == 0


def test_a_job_that_runs_for_days_keeps_the_cost_of_its_first_attempt() -> None:
    replay = new_replay()
    replay.see(pod("a"), pod("b"), at=10)
    replay.lose(ended(pod("a"), 40), at=41)

    assert costs(replay, 100 * HOUR) == {TRAIN: 30 + 100 * HOUR - 10}


def test_beyond_the_limit_jobs_are_added_up_by_tenant_and_model() -> None:
    replay = new_replay()
    replay.see(*(pod(name, gpus=gpus, owned=False) for name, gpus in (("a", 1), ("b", 2), ("c", 3))), at=10)

    assert costs(replay, 20, limit=1) == {("c", "ml", "A100", "ml"): 30, ("other", "ml", "A100", "other"): 30}


def test_jobs_with_pods_that_are_gone_are_kept_up_to_a_limit() -> None:
    replay = new_replay()
    with patch.object(JobCosts, "document_limit", Limit(None, 2)):
        for at, name in enumerate("abc", 20):
            replay.see(pod(name, owned=False), at=10)
            replay.lose(ended(pod(name, owned=False), at), at=at)

    assert costs(replay, 30) == {("b", "ml", "A100", "ml"): 11, ("c", "ml", "A100", "ml"): 12}


def test_costs_in_another_currency_do_not_count() -> None:
    replay = new_replay("EUR")
    replay.see(pod("a"), at=10)

    assert costs(replay, 20) == {}


def test_without_the_option_nothing_is_kept_or_exported() -> None:
    replay = new_replay()
    replay.fleet.jobs.costs.is_on = False
    replay.see(pod("a"), at=10)
    replay.lose(ended(pod("a"), 40), at=41)
    active = read_active(replay.fleet, now_us=us(50))

    assert active.costs is None
    assert list(JOB_COST.rows(view_of(active))) == []
    assert JobCosts.name not in {part for part, _ in replay.fleet.drain().documents}


def test_the_metric_has_a_row_for_each_job_in_usd() -> None:
    replay = new_replay()
    replay.see(pod("a"), at=10)

    assert list(JOB_COST.rows(view_of(read_active(replay.fleet, now_us=us(20))))) == [Row(TRAIN, 10.0)]
