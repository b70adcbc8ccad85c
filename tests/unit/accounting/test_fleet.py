from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from gputally.accounting.prices.book import ALWAYS, Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark, RelistFinished, RelistStarted
from gputally.model.price import Basis
from gputally.model.rules import Limits, Rules
from gputally.model.units import COST_UNIT
from tests.core.manifests import NodeForm, PodForm, priority_class, us
from tests.core.replay import Replay

HOUR = 3600
NODE = NodeForm(labels={"nvidia.com/gpu.product": "A100"})
RUNNING = PodForm(tier="gold", node="n1", scheduled=0, started=0, gpus=1)


def book(*dated: tuple[int, str], tiers: tuple[tuple[str, Decimal], ...] = (), digest: str = "d") -> PriceBook:
    """A100s cost (from second, price) an hour."""
    prices = tuple(DatedPrice(from_us=us(at) if at else ALWAYS, per_gpu_hour=Decimal(price)) for at, price in dated)
    rule = PriceRule(id="a100", criteria=(Criterion(trait=Trait.GPU_MODEL, globs=("A100",)),), prices=prices)
    return PriceBook(currency="EUR", basis=Basis.NODE, rules=(rule,), tiers=tiers, digest=digest)


def cluster(prices: PriceBook | None = None, rules: Rules = Rules()) -> Replay:  # noqa: B008 - frozen
    replay = Replay(book=prices, rules=rules)
    replay.see(NODE, RUNNING, at=1)
    return replay


def cost(replay: Replay, at: float) -> Fraction:
    return sum(replay.money(at).values(), Fraction(0))


def capacity_cost(replay: Replay, at: float) -> Fraction:
    return Fraction(sum(replay.true(Total.CAPACITY_COST, at).values()), COST_UNIT)


def test_an_hour_of_a_gpu_costs_its_price() -> None:
    assert cluster(book((0, "2.21"))).money(HOUR) == {("gold", "ml", "A100", "running", "EUR"): Fraction("2.21")}


def test_a_tier_may_have_a_multiplier_which_capacity_does_not_pay() -> None:
    replay = cluster(book((0, "2"), tiers=(("gold", Decimal("1.5")),)))

    assert cost(replay, HOUR) == 3
    capacity = {labels[2]: value for labels, value in replay.true(Total.CAPACITY_COST, HOUR).items()}
    assert capacity["free"] == 7 * capacity["allocated"] == 14 * HOUR * 10**6 * 10**6 * 10**12


def test_gpus_without_a_price_are_counted_as_unpriced_and_never_cost() -> None:
    replay = cluster(book((HOUR, "2")))

    assert replay.gpu_seconds(HOUR, Total.UNPRICED) == {("gold", "ml", "A100"): HOUR}
    assert cost(replay, HOUR) == 0


def test_without_a_book_all_is_unpriced() -> None:
    assert cluster().gpu_seconds(10, Total.UNPRICED) == {("gold", "ml", "A100"): 10}


def test_a_price_change_counts_from_its_instant_on_as_soon_as_time_has_passed_it() -> None:
    replay = cluster(book((0, "2"), (HOUR, "4")))
    replay.fleet.advance(us(HOUR))

    assert cost(replay, 2 * HOUR) == 6
    assert [s.start_us for s in replay.segments()] == [us(0), us(HOUR)]


def test_a_lower_price_lets_no_counter_fall() -> None:
    replay = cluster(book((0, "4"), (HOUR, "0")))
    replay.scrape(HOUR - 1)
    replay.scrape(HOUR - 0.5)
    replay.scrape(HOUR + 100)

    assert cost(replay, HOUR + 100) == 4


def test_a_pod_that_ends_right_after_a_price_change_pays_both_prices() -> None:
    replay = cluster(book((0, "2"), (HOUR, "4")))
    replay.fleet.advance(us(HOUR - 1))
    replay.lose(replace(RUNNING, phase="Failed"), at=HOUR + 1)

    assert cost(replay, 2 * HOUR) == 2 + Fraction(4, HOUR)


def test_a_change_from_unpriced_to_priced_is_dated_too() -> None:
    replay = cluster(book((HOUR, "4")))
    replay.scrape(3 * HOUR)

    assert cost(replay, 3 * HOUR) == 8
    assert replay.gpu_seconds(3 * HOUR, Total.UNPRICED) == {("gold", "ml", "A100"): HOUR}


def test_a_new_price_book_counts_from_its_load_on() -> None:
    replay = cluster(book((0, "2")))
    replay.scrape(HOUR)
    replay.restart(book=book((0, "5"), digest="e"))
    replay.lose(replace(RUNNING, phase="Failed"), at=2 * HOUR)

    assert cost(replay, 3 * HOUR) == 7
    assert [(s.price.per_gpu_hour, s.end_us) for s in replay.segments() if s.price] == [
        (Decimal(2), us(HOUR)),
        (Decimal(5), us(2 * HOUR)),
    ]


def test_a_new_price_book_leaves_the_price_changes_of_the_old_one_where_they_were() -> None:
    replay = cluster(book((0, "2"), (HOUR, "4")))
    replay.scrape(2 * HOUR)
    replay.restart(book=book((0, "5"), digest="e"))

    assert cost(replay, 3 * HOUR) == 2 + 4 + 5


def test_a_new_price_book_keeps_posted_prices_when_a_node_turns_out_to_have_been_unready() -> None:
    """It was so for five seconds of the restart, and is what it was."""
    replay = cluster(book((0, "2")))
    replay.scrape(HOUR)
    replay.restart(book=book((0, "5"), digest="e"))
    replay.see(replace(NODE, ready_since=HOUR + 5), at=HOUR + 10, since=HOUR)

    assert cost(replay, 2 * HOUR) == 2 + 5


def test_a_new_price_book_keeps_posted_prices_when_shares_of_gpus_become_known() -> None:
    replay = cluster(book((0, "2")))
    replay.scrape(HOUR)
    replay.restart(book=book((0, "5"), digest="e"))
    shared = {"nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.count": "4"}
    replay.see(replace(NODE, labels={**NODE.labels, **shared}), at=HOUR + 10)

    assert cost(replay, 2 * HOUR) == Fraction(2 + 5, 2)


def test_a_pod_whose_node_becomes_known_after_a_restart_pays_the_nodes_price_for_all_of_its_time() -> None:
    replay = Replay(book=book((0, "2")))
    replay.see(RUNNING, at=1)
    replay.scrape(HOUR)
    replay.restart()
    replay.see(NODE, at=HOUR + 1)

    assert cost(replay, 2 * HOUR) == 4
    assert replay.gpu_seconds(2 * HOUR, Total.UNPRICED) == {}


def test_the_cost_of_capacity_follows_the_book_over_changes_and_restarts() -> None:
    replay = cluster(book((0, "2"), (HOUR, "4")))
    replay.scrape(2 * HOUR)
    assert capacity_cost(replay, 2 * HOUR) == 8 * 6

    replay.restart(book=book((0, "5"), digest="e"))
    assert capacity_cost(replay, 3 * HOUR) == 8 * 11


def test_the_same_price_book_cuts_nothing_at_a_restart() -> None:
    replay = cluster(book((0, "2")))
    replay.scrape(HOUR)
    replay.restart()

    assert replay.spans() == [("running", 0, None)]


def test_counters_go_on_over_a_restart() -> None:
    replay = cluster(book((0, "2")))
    replay.scrape(100)
    replay.scrape(110)
    replay.restart()
    rows = replay.scrape(200).totals[Total.ALLOCATED]

    assert [(row.labels, row.value, row.ahead) for row in rows] == [
        (("gold", "ml", "A100", "running"), 200 * 10**12, 0)
    ]


def test_what_was_not_kept_before_a_crash_is_told_again_and_counts_once() -> None:
    replay = cluster()
    replay.scrape(10)
    replay.see(replace(RUNNING, name="b", scheduled=11, started=11), at=12)
    replay.restart()
    replay.see(replace(RUNNING, name="b", scheduled=11, started=11), at=20, since=10)

    assert replay.by_state(30) == {"running": 49}


def test_a_watch_resumes_where_it_had_come_to_but_not_inside_a_listing() -> None:
    replay = cluster()
    replay.see(replace(RUNNING, version=7), at=5)
    assert (replay.fleet.coverage.resumes[Kind.PODS].version, replay.fleet.coverage.resumes[Kind.PODS].at_us) == (
        "7",
        us(5),
    )

    replay.apply(RelistStarted(kind=Kind.PODS, at_us=us(9)))
    replay.see(replace(RUNNING, version=9), at=9)
    assert replay.fleet.coverage.resumes[Kind.PODS].version == "7"

    replay.apply(RelistFinished(kind=Kind.PODS, version="1000", at_us=us(9), since_us=us(8), as_of_us=us(9)))
    assert replay.fleet.coverage.resumes[Kind.PODS].version == "1000"
    replay.apply(Bookmark(kind=Kind.PODS, version="1005", at_us=us(12), since_us=us(12)))
    replay.flush()
    assert replay.memory.resumes[Kind.PODS].version == "1005"


def test_between_the_opening_of_the_books_and_the_first_listing_nobody_watched() -> None:
    replay = Replay(opened=2)
    replay.relist(Kind.PODS, RUNNING, at=9, since=None)
    replay.flush()

    assert replay.memory.interruptions == {(Kind.PODS, us(2)): us(9)}


def test_a_node_missing_from_the_first_listing_after_a_restart_vanished_since_it_was_last_watched() -> None:
    replay = cluster()
    replay.see(replace(NODE, version=2), at=50)
    replay.flush()
    replay.restart()
    replay.relist(Kind.NODES, at=90, since=None)
    replay.flush()

    assert replay.by_state(100) == {"running": 50}
    assert replay.memory.interruptions == {(Kind.NODES, us(50)): us(90)}


def test_listings_of_one_kind_do_not_touch_another() -> None:
    replay = cluster()
    replay.relist(Kind.NAMESPACES, at=9, since=8)

    assert set(replay.fleet.pods.records) == {"uid-a"}
    assert replay.fleet.nodes.known() == {"uid-n1"}


def test_a_clock_that_steps_back_does_not_turn_the_books_back() -> None:
    replay = cluster()
    replay.scrape(100)
    replay.scrape(110)
    replay.see(replace(RUNNING, name="b", scheduled=20, started=20), at=30)
    replay.scrape(31)
    replay.scrape(32)

    assert replay.fleet.now_us == us(110)
    assert replay.by_state(200) == {"running": 380}


def test_values_past_the_limit_are_exported_as_other_and_keep_their_names_in_the_segments() -> None:
    replay = cluster(rules=Rules(limits=Limits(tiers=1)))
    replay.see(replace(RUNNING, name="b", tier="lead"), at=2)

    assert {labels[0] for labels in replay.gpu_seconds(10)} == {"gold", "other"}
    assert replay.segments("b")[0].tier == "lead"
    assert replay.fleet.limiter.refusals["tier"] > 0


def test_admitted_values_stay_admitted_over_a_restart_with_a_lower_limit() -> None:
    replay = cluster()
    replay.see(replace(RUNNING, name="b", tier="lead"), at=2)
    replay.scrape(10)
    replay.restart(rules=Rules(limits=Limits(tiers=1)))
    replay.see(replace(RUNNING, name="c", tier="new"), at=12)

    assert {labels[0]: value for labels, value in replay.gpu_seconds(20).items()} == {
        "gold": 20,
        "lead": 20,
        "other": 20,
    }


def test_known_tiers_and_those_of_priority_classes_are_exported_before_any_pod_has_them() -> None:
    replay = Replay(rules=Rules(known_tiers=("gold",)))
    replay.see_class(priority_class("lead", 100), at=1)
    replay.see_class(priority_class("system-node-critical", 2_000_000_000), at=1)

    assert replay.scrape(2).tiers == ("gold", "lead")


def test_time_before_the_books_were_opened_is_in_the_segments_and_not_in_the_counters() -> None:
    replay = Replay(opened=100)
    replay.see(NODE, RUNNING, at=101)

    assert replay.by_state(150) == {"running": 50}
    assert replay.spans() == [("running", 0, None)]


def test_changes_are_handed_over_once() -> None:
    replay = cluster()
    replay.scrape(10)
    changes = replay.fleet.drain()

    assert (changes.revisions, changes.pods, changes.nodes, changes.series, changes.known_values) == (
        {},
        {},
        {},
        {},
        {},
    )


def test_changes_that_were_not_written_are_one_step_with_those_that_follow() -> None:
    replay = cluster()
    first = replay.fleet.drain()
    replay.see(replace(RUNNING, started=3), NODE, at=5)
    replay.lose(replace(RUNNING, phase="Succeeded", finished=8), at=9)
    both = first.followed_by(replay.fleet.drain())

    assert both.revisions["uid-a"].end_us == us(8)
    assert both.pods == {"uid-a": None}
    assert set(both.nodes) == {"uid-n1"}
    assert both.at_us == us(9)
