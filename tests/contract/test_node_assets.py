"""The asset and price of each node over time, on all back-ends."""

from collections import Counter

from msgspec.structs import replace

from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.node_record import CapacityState
from gputally.model.price import Price
from gputally.reports.capacity import UNOBSERVED, read_capacity_cells, read_node_assets
from tests.contract.records import ASSET, FACTS, us
from tests.contract.test_unallocated import HOUR, THREE, TWO, held, node, priced

OTHER = replace(ASSET, pool="b")
IN_B = replace(FACTS, pool="b", asset=OTHER)
ALL = Window(us(5 * HOUR), us(30 * HOUR))


def changes(reader: LedgerReader, window: Window = ALL) -> list[int]:
    """The hours of all cuts."""
    return [at_us // us(HOUR) for at_us in read_node_assets(reader, window).cuts()]


def pool_and_price(reader: LedgerReader, uid: str, hour: int, window: Window = ALL) -> tuple[str, Price | None]:
    found = read_node_assets(reader, window).at(uid, us(hour * HOUR))
    return found.asset.pool, found.price


def test_a_change_of_price_or_labels_is_a_cut_and_no_other_change_is(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(priced((1, TWO), (10, THREE), (12, THREE)))
    unready = replace(FACTS, ready=False)
    ledger.write(node("node-1", (5, FACTS), (6, unready), (7, FACTS), (15, IN_B), gone=20))
    ledger.write(node("node-2", (8, FACTS), (9, unready)))

    assert changes(reader) == [10, 15]
    assert [pool_and_price(reader, "node-1", hour) for hour in (5, 9, 10, 14, 15, 25)] == [
        ("a", TWO),
        ("a", TWO),
        ("a", THREE),
        ("a", THREE),
        ("b", None),
        ("b", None),
    ]
    assert read_node_assets(reader, ALL).cuts(lambda each: each.asset) == (us(15 * HOUR),)


def test_a_pod_is_on_the_node_that_continues_its_own(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(priced((1, TWO)))
    ledger.write(node("node-1", (5, FACTS), gone=9))
    ledger.write(node("node-2", (10, IN_B), continues="node-1", gone=19))
    ledger.write(node("node-3", (20, IN_B), continues="node-2"))

    assert changes(reader) == [10]
    assert [pool_and_price(reader, "node-1", hour)[0] for hour in (5, 9, 10, 25)] == ["a", "a", "b", "b"]


def test_a_node_that_ended_before_the_window_is_known_by_its_last_record(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(priced((1, TWO)))
    ledger.write(node("node-1", (5, IN_B), (6, FACTS), gone=9))
    ledger.write(node("node-2", (12, IN_B), continues="node-1"))
    ledger.write(node("node-9", (5, IN_B), gone=8))
    window = Window(us(10 * HOUR), us(30 * HOUR))

    assert changes(reader, window) == [12]
    assert [pool_and_price(reader, "node-1", hour, window) for hour in (10, 12)] == [("a", TWO), ("b", None)]
    assert pool_and_price(reader, "node-9", 11, window) == ("b", None)
    assert read_node_assets(reader, window).at("node-7", us(11 * HOUR)) == UNOBSERVED


def test_allocated_time_of_nodes_has_the_prices_of_capacity(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(priced((1, TWO), (10, THREE)))
    ledger.write(node("node-1", (5, FACTS), gone=11))
    ledger.write(node("node-2", (14, FACTS), (15, IN_B), continues="node-1"))
    ledger.write(held(4, 20, gpus=2))
    ledger.write(held(6, 25, gpus=1, node_uid="node-7"))
    nodes = read_node_assets(reader, ALL)
    cuts = nodes.cuts()

    by_price = Counter[tuple[str, Price | None]]()
    for each in reader.allocated(ALL, ("node_uid",), cuts=cuts):
        known = nodes.at(each.labels[0], (ALL.start_us, *cuts)[each.period])
        by_price[known.asset.pool, known.price] += each.gpu_time // us(us(HOUR))

    assert by_price == {("a", TWO): 2 * 5, ("a", THREE): 2 * 5, ("b", None): 2 * 5, ("none", None): 19}
    assert by_price == Counter(
        {
            (each.pool, each.price): each.gpu_time // us(us(HOUR))
            for each in read_capacity_cells(reader, ALL)
            if each.state is CapacityState.ALLOCATED
        }
    )
