"""Capacity that nobody held, from what nodes offered, what was allocated on them and what it cost, on all back-ends."""

from collections import defaultdict
from fractions import Fraction

from msgspec.structs import replace

from gputally.accounting.changes import Changes
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import Window
from gputally.model.node_record import CapacityState, NodeFacts, NodeRecord
from gputally.model.price import Price
from gputally.model.units import COST_UNIT, GPU, GPU_HOUR, PICO
from gputally.reports.capacity import read_capacity_cells
from gputally.reports.cells import UNALLOCATED, read_cells, read_unallocated
from gputally.reports.choices import Filter
from gputally.reports.query import ReportQuery
from tests.contract.records import ASSET, FACTS, PRICE, pod, segment, step, us

HOUR = 3600
TWO, THREE = (replace(PRICE, key=f"book/{rate}", per_gpu_hour=rate, rate=rate * PICO) for rate in (2, 3))
WHOLE = replace(FACTS, allocatable=8 * GPU)


def node(uid: str, *facts: tuple[int, NodeFacts], continues: str = "", gone: int | None = None) -> Changes:
    """A node that offers this from these hours on."""
    history = tuple((us(hour * HOUR), each) for hour, each in facts)
    gone_us = None if gone is None else us(gone * HOUR)
    record = NodeRecord(
        uid=uid, name="n1", created_us=history[0][0], facts=history, continues=continues, gone_us=gone_us
    )
    return step(at=100 * HOUR, nodes={uid: record}, capacity={(uid, at_us): ("n1", each) for at_us, each in history})


def priced(*prices: tuple[int, Price | None]) -> Changes:
    """The price of all nodes from these hours on."""
    return step(at=100 * HOUR, asset_prices={(ASSET, us(hour * HOUR)): price for hour, price in prices})


def held(start: int, end: int | None, *, gpus: int, node_uid: str = "node-1") -> Changes:
    """A pod that holds GPUs from one hour to another."""
    end_s = None if end is None else end * HOUR
    record = pod(
        f"pod-{start}-{node_uid}", segment(start * HOUR, end_s, quantity=gpus * GPU, price=TWO), node_uid=node_uid
    )
    return step(record, at=100 * HOUR)


def found(reader: LedgerReader, start: int, end: int, *by: str, **where: str) -> dict[tuple[str, ...], Fraction]:
    """GPU-hours between two hours, by labels, state and cost."""
    filters = tuple(Filter(column, (glob,)) for column, glob in where.items())
    query = ReportQuery(window=Window(us(start * HOUR), us(end * HOUR)), by=by, filters=filters)
    hours = defaultdict[tuple[str, ...], Fraction](Fraction)
    for each in read_unallocated(reader, query):
        hours[*each.labels, each.state, str(Fraction(each.cost, COST_UNIT))] += Fraction(each.gpu_time, GPU_HOUR)
    return hours


def states(reader: LedgerReader, start: int, end: int) -> dict[str, Fraction]:
    """GPU-hours by state."""
    query = ReportQuery(window=Window(us(start * HOUR), us(end * HOUR)), by=("gpu_model", "pool"))
    hours = defaultdict[str, Fraction](Fraction)
    for each in read_unallocated(reader, query):
        assert each.labels == ("H100", "a")
        hours[each.state] += Fraction(each.gpu_time, GPU_HOUR)
    return dict(hours)


def test_what_nobody_held_is_free_at_the_price_of_its_time(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(priced((1, TWO), (10, THREE), (12, THREE)))
    ledger.write(node("node-1", (5, WHOLE)))
    ledger.write(held(8, 12, gpus=6))

    assert found(reader, 5, 20, "tenant") == {
        (UNALLOCATED, "free", str(2 * (3 * 8 + 2 * 2))): 28,
        (UNALLOCATED, "free", str(3 * (2 * 2 + 8 * 8))): 68,
    }


def test_states_are_those_of_the_metrics(ledger: Ledger, reader: LedgerReader) -> None:
    cordoned, lost = replace(WHOLE, cordoned=True), replace(WHOLE, ready=False)
    sliced = replace(WHOLE, covered=6 * GPU, allocatable=5 * GPU, divided=True)
    ledger.write(priced((1, TWO)))
    ledger.write(node("node-1", (5, FACTS), (6, cordoned), (7, lost), (8, sliced), gone=9))
    ledger.write(held(5, None, gpus=2))

    assert states(reader, 5, 20) == {"free": 5 + 3, "unhealthy": 2, "cordoned": 6, "unknown": 6, "unsliced": 2}


def test_pods_of_a_machine_that_registered_again_are_on_both_of_its_nodes(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(priced((1, None)))
    ledger.write(node("node-1", (5, WHOLE), gone=10))
    ledger.write(node("node-2", (10, WHOLE), continues="node-1", gone=20))
    ledger.write(held(6, 15, gpus=8))

    assert found(reader, 5, 30, "day", "node") == {("1970-01-01", UNALLOCATED, "free", "0"): 8 * (1 + 5)}


def test_pods_that_outlive_their_node_hold_nothing_of_another_one_with_its_name(
    ledger: Ledger, reader: LedgerReader
) -> None:
    ledger.write(node("node-1", (5, WHOLE), gone=10))
    ledger.write(node("node-2", (10, WHOLE), gone=20))
    ledger.write(held(6, 15, gpus=8))

    assert found(reader, 5, 30) == {("free", "0"): 8 * (1 + 10)}
    window = Window(us(12 * HOUR), us(16 * HOUR))
    outlived = [each for each in read_capacity_cells(reader, window) if each.state is CapacityState.OVERCOMMITTED]
    assert [(each.gpu_model, each.pool, each.gpu_time) for each in outlived] == [("H100", "a", 3 * 8 * GPU_HOUR)]


def test_capacity_before_the_window_does_not_count_where_pods_outlived_a_node(
    ledger: Ledger, reader: LedgerReader
) -> None:
    ledger.write(node("node-1", (5, WHOLE), gone=10))
    ledger.write(node("node-2", (6, WHOLE), gone=8))
    ledger.write(held(6, 15, gpus=2))

    assert found(reader, 12, 16) == {}


def test_filters_on_what_capacity_has_keep_it_and_others_do_not(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(priced((1, TWO)))
    ledger.write(node("node-1", (5, WHOLE)))

    assert found(reader, 5, 6, gpu_model="H*", purchase="spot") == {("free", "16"): 8}
    assert found(reader, 5, 6, gpu_model="A100") == {}
    assert found(reader, 5, 6, tenant="red") == {}


def test_all_capacity_is_held_free_or_in_another_state(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(priced((1, TWO)))
    ledger.write(node("node-1", (5, WHOLE), (8, FACTS)))
    ledger.write(held(6, 9, gpus=3))
    query = ReportQuery(window=Window(us(5 * HOUR), us(10 * HOUR)), by=("tier",))

    cells = [*read_cells(reader, query)[0], *read_unallocated(reader, query)]

    assert sum(each.gpu_time for each in cells) == 5 * 8 * GPU_HOUR
    assert sum(each.cost for each in cells) == 5 * 8 * 2 * COST_UNIT
