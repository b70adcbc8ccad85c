"""Whatever is revised between closings, closed totals plus corrections are what the ledger had at the last closing."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.ledger.closed_period import LineKey, broken_chain, sums_of
from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.allocation import Segment
from tests.contract.records import OPENED_S, PRICE, pod, segment, step, us
from tests.core.closings import close, truth
from tests.property.examples import examples

END_S = OPENED_S + 1000
CHEAPER = replace(PRICE, key="cheaper", per_gpu_hour=PRICE.per_gpu_hour / 2, rate=PRICE.rate // 2)
TIMES = st.integers(OPENED_S - 100, END_S)


@st.composite
def segment_lists(draw: st.DrawFn) -> tuple[Segment, ...]:
    """Segments that follow each other; the last one may be open."""
    edges = sorted(draw(st.sets(TIMES, min_size=2, max_size=5)))
    last = draw(st.sampled_from([None, edges[-1]]))
    ends = [*edges[1:-1], last]
    return tuple(
        segment(
            start,
            end,
            quantity=draw(st.integers(1, 10**15)),
            tenant=draw(st.sampled_from(["red", "blue"])),
            price=draw(st.sampled_from([PRICE, CHEAPER, None])),
        )
        for start, end in zip(edges, ends, strict=False)
    )


REVISIONS = st.lists(st.tuples(st.sampled_from("abc"), segment_lists()), max_size=4)
PERIODS = st.lists(TIMES.filter(lambda at: at > OPENED_S), min_size=2, max_size=6, unique=True).map(sorted)


@given(PERIODS, st.data())
@examples(25)
def test_closed_totals_and_corrections_add_up_to_the_ledger(edges: list[int], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "l.db"
        with SqliteLedger(path) as ledger:
            ledger.write(step(at=OPENED_S))
            revision = 0
            windows = list[Window]()
            for start, end in pairwise(edges):
                for uid, segments in data.draw(REVISIONS):
                    revision += 1
                    ledger.write(step(pod(uid, *segments, revision=revision), at=END_S, live=None))
                ledger.write(step(at=END_S, live=None))
                if data.draw(st.booleans()):
                    windows.append(Window(us(start), us(end)))
                    with open_reader(str(path)) as reader:
                        close(ledger, reader, windows[-1])
                        expected = Counter[tuple[int, LineKey]]()
                        for number, window in enumerate(windows, 1):
                            for key, gpu_time in truth(reader, window).items():
                                expected[number, key] = gpu_time
                        closed = reader.closed_periods()
                    assert broken_chain(closed) is None
                    assert {key: time for key, time in sums_of(closed).items() if time} == expected
                    assert {line.of for line in closed[-1].lines} <= set(range(1, len(windows) + 1))
