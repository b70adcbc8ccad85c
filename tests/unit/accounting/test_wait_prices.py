"""When the prices of waits are looked up, and which prices count until then."""

from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

from gputally.accounting.totals.total import Total
from gputally.accounting.wait_book.prices import MOST_NODE_CHECKS
from gputally.accounting.waiting.waiting import WaitingPods
from gputally.model.kube.kinds import Kind
from gputally.model.needs import Needs
from gputally.model.observation import Bookmark
from gputally.model.rules import Rules
from tests.core.manifests import GPU_NAME, NodeForm, as_pod, us
from tests.core.refusals import parallel_job
from tests.core.replay import Replay
from tests.property.price_lists import book_of
from tests.told import Prices
from tests.unit.accounting.test_waiting import H100, WAITS, book, new_replay, prices

BY_POOL = book_of(Prices(models={}, tiers={}, labels={"pool": ((0, Fraction(36)),)}))
POOLS = [NodeForm(name=f"n{number}", gpus=8, labels={"pool": f"p{number}"}) for number in range(60)]
HOUR = 3600
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def test_verdicts_take_nothing_from_the_looks_for_prices() -> None:
    replay = new_replay(book=book(h100=36))
    waiting, found = replay.fleet.waiting, replay.fleet.waiting.book.terms.prices
    found.renew()
    waiting.room.answers.looked_at += 2 * MOST_NODE_CHECKS  # by verdicts on pods that all differ

    prices_of_one = found.of(Needs(namespace="ml", amounts=((GPU_NAME, 1),), gpus=(GPU_NAME,)), "lead")
    assert prices_of_one
    assert prices_of_one.lowest
    assert prices_of_one.lowest.per_gpu_hour == 36


def test_a_pod_whose_turn_comes_late_costs_the_same_since_it_began_to_wait() -> None:
    replay = Replay(opened=0, book=BY_POOL)
    replay.relist(Kind.NODES, *POOLS, at=1, since=None)
    replay.relist(Kind.PODS, at=2, since=None)
    replay.see(*(replace(WAITS, name=f"h{number}", priority=number) for number in range(20)), at=20)
    with patch("gputally.accounting.wait_book.prices.MOST_NODE_CHECKS", 1):
        replay.scrape(21)
        replay.see(replace(WAITS, gpus=1, tier="gold"), at=21)
        replay.scrape(22)
        assert prices(replay, "b")[0] is None
        assert judged(replay.fleet.waiting, at=30) > 10
    replay.scrape(120)

    assert replay.true(Total.PENDING_UNPRICED, 120) == {}
    assert replay.fleet.waiting.book.known["uid-b"].waits[0].from_us == us(20)
    assert prices(replay, "b")[0] == 36


def judged(waiting: WaitingPods, *, at: int) -> int:
    """Judge until nothing is left to do; returns in how many steps."""
    steps = 0
    while waiting.is_behind:
        waiting.judge(at_us=us(at))
        steps += 1
    return steps


def test_many_jobs_that_all_differ_are_all_priced_since_they_were_seen() -> None:
    replay = Replay(rules=Rules(known_tiers=("train",)), opened=0, book=BY_POOL)
    replay.relist(Kind.NODES, *POOLS, at=1, since=None)
    with patch("gputally.accounting.wait_book.prices.MOST_NODE_CHECKS", 1):
        jobs = (parallel_job(f"j{number}", gpus=1 + number % 8, queue="q", suspend=True) for number in range(8))
        replay.relist_objects(Kind.JOBS, *jobs, at=10)
        for _ in range(20):
            replay.fleet.uncreated.read()
    replay.scrape(20)

    assert replay.true(Total.UNCREATED_UNPRICED, 100) == {}
    assert sum(replay.money(100, Total.UNCREATED_COST).values()) == Fraction(36 * 90 * 4 * 36, HOUR)


def test_a_pod_of_whose_many_rules_some_are_left_out_has_no_price() -> None:
    replay = new_replay(book=book(h100=36))
    terms = [{"key": "pool", "operator": "NotIn", "values": [f"p{number}"]} for number in range(300)]
    manifest = replace(WAITS, node_selector=H100).manifest()
    required = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": terms}]}}
    manifest["spec"]["affinity"] = {"nodeAffinity": required}
    replay.see_pod(as_pod(manifest), at=21)
    replay.scrape(30)

    assert prices(replay, "b") == (None, None)


def test_a_label_that_expires_changes_the_price_without_any_event_of_the_node() -> None:
    replay = new_replay(book=book(h100=36, default=18))
    replay.see(replace(WAITS), at=21)
    replay.see(NodeForm(name="n1", gpus=8, version=5), at=30)
    replay.scrape(31)
    assert prices(replay, "b")[0] == 36, "it may have lost its label only for a while"

    late = 30 + HOUR + 10
    bookmark = Bookmark(kind=Kind.NODES, version="2000", at_us=us(late), since_us=us(late))
    replay.apply(bookmark)
    replay.scrape(late + 1)
    assert prices(replay, "b")[0] == 18
