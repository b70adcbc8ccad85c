"""Over random clusters, crashes and repeated writes, the ledger's file alone says what the naive reference says."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.changes import Changes, Saved
from gputally.accounting.totals.total import RECONCILED
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model import history
from gputally.model.node_record import CapacityState
from gputally.model.price import Price
from gputally.model.units import COST_UNIT
from gputally.reports.capacity import read_capacity_cells, read_node_assets
from gputally.reports.query import ReportQuery
from gputally.reports.waterfall import ALLOCATED, CAPACITY, RUNNING, read_waterfall_parts, waterfalls_of
from tests.core.manifests import us
from tests.core.memory import Memory
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, OPENED
from tests.property.price_lists import price_lists
from tests.property.strategies import Cluster, clusters
from tests.property.test_accounting import assert_laws, new_replay, truth_of
from tests.told import Prices

STEPS = ("", "", "flush", "flush", "crash")


class Filed(Memory):
    """Keeps everything in a file too, each step twice, and starts from what the file says."""

    def __init__(self, path: Path) -> None:
        super().__init__(accounting_start_us=us(OPENED))
        self.path = path

    def write(self, changes: Changes) -> None:
        super().write(changes)
        with SqliteLedger(self.path) as ledger:
            first, again = ledger.write(changes), ledger.write(changes)
        assert first == again == dict.fromkeys(RECONCILED, (0, 0))

    def saved(self) -> Saved:
        with SqliteLedger(self.path) as ledger:
            return ledger.saved(now_us=us(OPENED))


@given(clusters(outages=True), price_lists(), st.data())
@examples(25)
def test_the_file_holds_the_truth_whatever_crashed(cluster: Cluster, prices: Prices, data: st.DataObject) -> None:
    chapters = patch.object(history, "CHAPTER", data.draw(st.sampled_from([1, 2, 64])))
    with TemporaryDirectory() as folder, chapters:
        path = Path(folder) / "ledger.db"
        replay = new_replay(prices)
        replay.memory = Filed(path)
        for _ in with_crashes(replay, cluster.log, lambda: data.draw(st.sampled_from(STEPS))):
            pass
        assert_laws(replay)

        truth = truth_of(cluster, prices)
        assert in_file(path) == (+truth.allocated, {labels: cost for labels, cost in truth.cost.items() if cost})
        assert physical_in_file(path) == truth.physical


@given(clusters(outages=True), st.data())
@examples(25)
def test_the_states_of_capacity_follow_from_the_file(cluster: Cluster, data: st.DataObject) -> None:
    prices = Prices(models={}, tiers={})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        replay = new_replay(prices)
        replay.memory = Filed(path)
        for _ in with_crashes(replay, cluster.log, lambda: data.draw(st.sampled_from(STEPS))):
            pass
        replay.flush()

        assert capacity_in_file(path) == +truth_of(cluster, prices).capacity


@given(clusters(outages=True), price_lists(), st.data())
@examples(25)
def test_allocated_time_by_node_has_the_price_of_its_capacity(
    cluster: Cluster, prices: Prices, data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        replay = new_replay(prices)
        replay.memory = Filed(path)
        for _ in with_crashes(replay, cluster.log, lambda: data.draw(st.sampled_from(STEPS))):
            pass
        replay.flush()

        assert allocated_by_node(path) == allocated_capacity(path)
        assert waterfall_in_file(path) == steps_in_file(path)


def allocated_by_node(path: Path) -> Counter[tuple[str, str, Price | None]]:
    """Allocated GPU-time of [OPENED, HORIZON) by the model and pool of the node, and the price of its capacity."""
    window, found = Window(us(OPENED), us(HORIZON)), Counter[tuple[str, str, Price | None]]()
    with open_reader(str(path)) as reader:
        nodes = read_node_assets(reader, window)
        cuts = nodes.cuts()
        for each in reader.allocated(window, ("tenant", "node_uid"), cuts=cuts):
            known = nodes.at(each.labels[1], (window.start_us, *cuts)[each.period])
            found[known.asset.gpu_model, known.asset.pool, known.price] += each.gpu_time
    return found


def allocated_capacity(path: Path) -> Counter[tuple[str, str, Price | None]]:
    """The same from what nodes offered."""
    found = Counter[tuple[str, str, Price | None]]()
    with open_reader(str(path)) as reader:
        for each in read_capacity_cells(reader, Window(us(OPENED), us(HORIZON))):
            if each.state is CapacityState.ALLOCATED:
                found[each.gpu_model, each.pool, each.price] += each.gpu_time
    return found


def waterfall_in_file(path: Path) -> Counter[str]:
    """GPU-time and cost of [OPENED, HORIZON) by the first steps of the waterfall, and the bill."""
    query = ReportQuery(window=Window(us(OPENED), us(HORIZON)), by=("tier",))
    found = Counter[str]()
    with open_reader(str(path)) as reader:
        for each in waterfalls_of(*read_waterfall_parts(reader, query), first=CAPACITY):
            if each.labels is None:
                for step in (CAPACITY, ALLOCATED, RUNNING):
                    found[f"{step} time"] += each.level(step).gpu_time
                    found[f"{step} cost"] += each.level(step).cost
                found["billed"] += each.billed
    return +found


def steps_in_file(path: Path) -> Counter[str]:
    """The same from the records: all that nodes offered at its price, and all segments."""
    window, found = Window(us(OPENED), us(HORIZON)), Counter[str]()
    with open_reader(str(path)) as reader:
        for each in reader.capacity(window):
            gpu_time = each.physical * (each.end_us - each.start_us)
            found["capacity time"] += gpu_time
            found["capacity cost"] += each.price.cost(gpu_time) if each.price else 0
        nodes = read_node_assets(reader, window)
        for record in reader.segments(window):
            segment = record.segment
            cuts = [at for at in nodes.cuts() if segment.start_us < at < (segment.end_us or 0)]
            for start_us, end_us in pairwise([segment.start_us, *cuts, segment.end_us or 0]):
                gpu_time = segment.quantity * (end_us - start_us)
                price = nodes.at(record.node_uid, start_us).price
                steps = ("allocated", "running") if segment.state == "running" else ("allocated",)
                for step in steps:
                    found[f"{step} time"] += gpu_time
                    found[f"{step} cost"] += price.cost(gpu_time) if price else 0
                found["billed"] += segment.price.cost(gpu_time) if segment.price else 0
    return +found


def physical_in_file(path: Path) -> int:
    """Of [OPENED, HORIZON), in seconds of a millionth of a GPU."""
    with open_reader(str(path)) as reader:
        offered = reader.capacity(Window(us(OPENED), us(HORIZON)))
        return sum(each.physical * (each.end_us - each.start_us) for each in offered) // 1_000_000


def capacity_in_file(path: Path) -> Counter[tuple[str, str]]:
    """GPU-time of [OPENED, HORIZON) by model and state, in seconds of a millionth of a GPU."""
    found = Counter[tuple[str, str]]()
    with open_reader(str(path)) as reader:
        for each in read_capacity_cells(reader, Window(us(OPENED), us(HORIZON))):
            found[each.gpu_model, each.state.value] += each.gpu_time // 1_000_000
    return found


def in_file(path: Path) -> tuple[Counter[tuple[str, ...]], dict[tuple[str, ...], Fraction]]:
    """GPU-time of [OPENED, HORIZON) by labels, in seconds of a millionth of a GPU, and its cost."""
    found, cost = Counter[tuple[str, ...]](), dict[tuple[str, ...], Fraction]()
    with open_reader(str(path)) as reader:
        for each in reader.allocated(Window(us(OPENED), us(HORIZON)), ("tier", "tenant", "gpu_model", "state")):
            found[each.labels] += each.gpu_time // 1_000_000
            if each.cost:
                cost[each.labels] = cost.get(each.labels, Fraction(0)) + Fraction(each.cost, COST_UNIT)
    return found, cost
