"""Labels observed on a node for the first time: software's late ones held all along, others count from then."""

from dataclasses import replace
from decimal import Decimal

import msgspec
import pytest

from gputally.accounting.prices.book import ALWAYS, Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.model.kube.kinds import Kind
from gputally.model.rules import Rules
from tests.core.manifests import us
from tests.core.replay import Replay
from tests.unit.accounting.test_fleet import book
from tests.unit.accounting.test_node_labels import BY_TWO, FAMILY, FAST, LABELLED, POD, SHARED, relabelled, with_books


def by_pool(replay: Replay) -> list[tuple[str, float, float | None]]:
    """The pools of the pod's segments, in seconds."""
    return [
        (s.pool, (s.start_us - us(0)) / 1e6, None if s.end_us is None else (s.end_us - us(0)) / 1e6)
        for s in replay.segments()
    ]


def racks_at(price: str) -> PriceBook:
    """A book in which nodes with a label `rack`, or that NFD finds to be fast, have another price than the others."""
    rules = tuple(
        PriceRule(
            id=key,
            criteria=(Criterion(trait=Trait.LABEL, key=key, globs=("*",)),),
            prices=(DatedPrice(from_us=ALWAYS, per_gpu_hour=Decimal(price)),),
        )
        for key in ("rack", FAST)
    )
    return msgspec.structs.replace(book((0, "3600")), rules=(*rules, *book((0, "3600")).rules), digest="racks")


@pytest.mark.parametrize("key", ["rack", FAST])
def test_a_label_that_a_new_price_book_is_the_first_to_look_at_counts_from_then_on(key: str) -> None:
    replay = with_books()
    replay.see(relabelled(SHARED | {key: "x"}), POD, at=2)
    replay.scrape(102)
    replay.restart(book=racks_at("7200"))
    replay.relist(Kind.NODES, relabelled(SHARED | {key: "x"}), at=102, since=102)

    assert replay.money(112) == {("none", "ml", "A100", "running", "EUR"): 100 + 2 * 10}
    assert [end_us for _, _, end_us in by_pool(replay)] == [102, None]


def test_a_late_label_that_a_price_depends_on_is_priced_by_the_new_book() -> None:
    replay = Replay(book=racks_at("7200"))
    replay.see(LABELLED, POD, at=2)
    replay.scrape(102)
    replay.restart(book=racks_at("10800"))
    replay.see(relabelled(SHARED | {FAST: "true"}), at=102)

    assert replay.money(112) == {("none", "ml", "A100", "running", "EUR"): 3 * 110}


def test_a_label_that_a_new_price_book_ignores_keeps_its_price_when_another_label_comes_late() -> None:
    replay = Replay(book=racks_at("7200"))
    replay.see(relabelled({"nvidia.com/gpu.product": "A100", "rack": "x"}), POD, at=2)
    replay.scrape(102)
    replay.restart(book=book((0, "3600"), digest="e"))
    replay.see(relabelled({"nvidia.com/gpu.product": "A100", "rack": "x"} | BY_TWO), at=102)

    assert replay.money(112) == {("none", "ml", "A100", "running", "EUR"): (2 * 4 * 100 + 4 * 10) / 2}


def test_a_pool_label_that_new_rules_are_the_first_to_look_at_counts_from_then_on() -> None:
    replay = Replay()
    replay.see(relabelled(SHARED | {FAMILY: "train"}), POD, at=2)
    replay.flush()
    replay.restart(rules=Rules(pool_labels=(FAMILY,), digest="other"))
    replay.relist(Kind.NODES, relabelled(SHARED | {FAMILY: "train"}), at=102, since=102)

    assert by_pool(replay) == [("none", 2, 102), ("train", 102, None)]


def test_a_label_that_is_away_when_a_new_price_book_looks_at_it_first_says_nothing_of_the_time_before() -> None:
    """Node Feature Discovery restarts just then."""
    replay = with_books()
    replay.see(LABELLED, POD, at=2)
    replay.scrape(102)
    replay.restart(book=racks_at("7200"))
    replay.relist(Kind.NODES, LABELLED, at=102, since=102)
    replay.flush()
    replay.restart()
    replay.see(relabelled(SHARED | {FAST: "true"}), at=112)

    assert replay.money(122) == {("none", "ml", "A100", "running", "EUR"): 100 + 2 * 20}


def test_a_label_that_the_configuration_alone_looks_at_holds_since_the_birth_of_a_node_of_its_time() -> None:
    replay = Replay(book=racks_at("7200"))
    replay.see(LABELLED, POD, at=2)
    replay.see(relabelled(SHARED | {FAST: "true"}), at=62)

    assert replay.money(72) == {("none", "ml", "A100", "running", "EUR"): 2 * 70}


@pytest.mark.parametrize("key", ["gputally.io/purchase", "accelerator", "pool"])
def test_what_somebody_puts_on_a_node_counts_from_then_on(key: str) -> None:
    replay = Replay(rules=Rules(pool_labels=("pool",)))
    replay.see(relabelled({}), POD, at=2)
    replay.see(relabelled({key: "reserved"}), at=62)
    history = replay.fleet.nodes.pod_node_of(replay.fleet.pods.records["uid-a"]).history

    assert [at_us for at_us, _ in history] == [us(0), us(62)]


def test_of_a_machine_that_registers_anew_nothing_is_told_that_was_not_looked_at_before() -> None:
    machine = replace(LABELLED, machine="4c4c4544")
    again = replace(machine, uid="uid-again", created=105, labels=SHARED | {FAST: "true"})
    replay = with_books()
    replay.see(machine, POD, at=2)
    replay.scrape(102)
    replay.lose(machine, at=102)
    replay.flush()
    replay.restart(book=racks_at("7200"))
    replay.see(again, at=105)

    assert replay.money(112) == {("none", "ml", "A100", "running", "EUR"): 103 + 2 * 7}


def test_a_pool_of_the_past_outlives_the_rules_that_found_it() -> None:
    replay = Replay(rules=Rules(pool_labels=("pool",)))
    replay.see(relabelled({"pool": "train"}), POD, at=2)
    replay.flush()
    replay.restart(rules=Rules(pool_labels=("team",), digest="other"))
    replay.relist(Kind.NODES, relabelled({"pool": "train", "team": "b"}), at=62, since=62)
    replay.see(relabelled(SHARED | {"pool": "train", "team": "b"}), at=72)

    assert by_pool(replay) == [("train", 2, 62), ("b", 62, None)]
