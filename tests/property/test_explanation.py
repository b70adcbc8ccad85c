"""Over random clusters with prices, `explain` adds up to every line of a report, exactly."""

from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from gputally.ledger.open import open_reader
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.units import US_PER_SECOND
from gputally.reports.bill import Line, bill_of
from gputally.reports.cells import read_cells
from gputally.reports.choices import Filter
from gputally.reports.explanation import ExplainedPod, ExplainedSums, explain
from gputally.reports.query import ReportQuery
from tests.core.manifests import us
from tests.property.crashes import with_crashes
from tests.property.examples import examples
from tests.property.node_lives import HORIZON, OPENED
from tests.property.price_lists import price_lists
from tests.property.strategies import Cluster, clusters
from tests.property.test_accounting import new_replay
from tests.property.test_sqlite_ledger import STEPS, Filed
from tests.told import Prices

DIMENSIONS = st.sampled_from(
    [("tenant", "tier"), ("gpu_model", "node"), ("job", "pod"), ("purchase", "outcome"), ("hours", "hour", "tenant")]
)
SECONDS = st.integers(OPENED, HORIZON)


@contextmanager
def ledger_of(cluster: Cluster, prices: Prices, data: st.DataObject) -> Iterator[LedgerReader]:
    """The ledger of a random history with crashes, each change written twice."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        replay = new_replay(prices)
        replay.memory = Filed(path)
        for _ in with_crashes(replay, cluster.log, lambda: data.draw(st.sampled_from(STEPS))):
            pass
        replay.flush()
        with open_reader(str(path)) as reader:
            yield reader


@given(clusters(outages=True), price_lists(), DIMENSIONS, SECONDS, SECONDS, st.data())
@examples(25)
def test_an_explanation_adds_up_to_every_line_of_a_report(
    cluster: Cluster, prices: Prices, by: tuple[str, ...], one: int, other: int, data: st.DataObject
) -> None:
    query = ReportQuery(window=Window(us(min(one, other)), us(max(one, other) + 1)), by=by)
    with ledger_of(cluster, prices, data) as reader:
        for line in bill_of(*read_cells(reader, query)).lines:
            pods = list(explain(reader, _filtered(query, line)))

            assert _sum(pods, query.window) == (line.gpu_time, line.unpriced, line.cost)
            assert {each.currency for pod in pods for each in pod.segments} <= {line.currency, ""}
            assert_pods_are_whole(pods, query.window)


def _filtered(query: ReportQuery, line: Line) -> ReportQuery:
    filters = [Filter(column, (escape(value),)) for column, value in zip(query.columns, line.labels, strict=True)]
    return ReportQuery(window=query.window, by=query.by, filters=tuple(filters))


def _sum(pods: list[ExplainedPod], window: Window) -> tuple[int, int, int]:
    """GPU-time, the unpriced part and cost."""
    sums = ExplainedSums(window)
    for pod in pods:
        sums.add(pod)
    [total] = sums.totals()
    return total.gpu_time, total.unpriced, total.cost


def assert_pods_are_whole(pods: list[ExplainedPod], window: Window) -> None:
    """Each pod once, its parts in the order of time within its allocation, which is charged up to the gap at most."""
    assert len({pod.of.pod_uid for pod in pods}) == len(pods)
    for pod in pods:
        allocation, segments = pod.allocation, [each.segment for each in pod.segments]
        ends = [each.end_us or 0 for each in segments]
        assert [each.start_us for each in segments] == sorted(each.start_us for each in segments)
        assert allocation.scheduled_us <= segments[0].start_us
        assert window.start_us <= segments[0].start_us < max(ends) <= window.end_us
        assert allocation.end_us is None or max(ends) <= allocation.end_us
        gap = allocation.gap
        assert gap is None or allocation.end_us == gap.from_us
        longest = (gap.to_us - gap.from_us) if gap else 0
        assert (
            0
            <= pod.uncharged(window)
            <= longest * sum(each.quantity for each in segments if each.end_us == (gap and gap.from_us))
        )
        assert pod.uncharged(window) % US_PER_SECOND == 0
