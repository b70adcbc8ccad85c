"""Cells with GPU-time in GPU-hours and prices in currency units."""

from decimal import Decimal
from typing import NamedTuple

from hypothesis import strategies as st

from gputally.ledger.records import MeasuredTime
from gputally.model.price import Basis, Price, Purchase
from gputally.model.units import GPU_HOUR, PICO
from gputally.reports.cells import Cell, JobCell, LineJobs, LostCell, UnobservedCell, UsageCell


def price(per_hour: str, *, currency: str = "USD") -> Price:
    amount = Decimal(per_hour)
    return Price(
        key=f"book/{per_hour}",
        currency=currency,
        per_gpu_hour=amount,
        rate=int(amount * PICO),
        basis=Basis.NODE,
        purchase=Purchase.ON_DEMAND,
    )


def cell(hours: float, paid: Price | None, *, line: str = "red", state: str = "running") -> Cell:
    return Cell(labels=(line,), state=state, price=paid, gpu_time=int(hours * GPU_HOUR))


def job_cell(
    hours: float, paid: Price | None, *, line: str = "red", job: str = "train", model: str = "H100"
) -> JobCell:
    return JobCell(
        labels=(line,),
        job=("ml", "Job", job),
        kind=(model, "low", ""),
        price=paid,
        gpu_time=int(hours * GPU_HOUR),
    )


def usage_cell(line: str, usage: MeasuredTime) -> UsageCell:
    return UsageCell(labels=(line,), price=usage.price, usage=usage)


PRICES = (None, price("2.21"), price("3.75"), price("0.1234567"), price("1.1", currency="EUR"))
_lines = st.sampled_from(["red", "blue", "green"]).map(lambda line: (line,))
cells = st.lists(
    st.builds(
        Cell,
        labels=_lines,
        state=st.sampled_from(["starting", "gang_wait", "running", "terminating"]),
        price=st.sampled_from(PRICES),
        gpu_time=st.integers(1, 10**19),
    ),
    max_size=12,
)
"""Any cells, in two currencies and unpriced."""
job_cells = st.lists(
    st.builds(
        JobCell,
        labels=_lines,
        job=st.sampled_from(["a", "b", "c"]).map(lambda job: ("ml", "Job", job)),
        kind=st.sampled_from(["H100", "A100"]).map(lambda model: (model, "low", "")),
        price=st.sampled_from(PRICES),
        gpu_time=st.integers(1, 10**19),
    ),
    max_size=12,
)
"""The same by job."""
line_jobs = st.lists(
    st.builds(LineJobs, labels=_lines, price=st.sampled_from(PRICES), jobs=st.sets(st.integers(0, 9), min_size=1)),
    max_size=8,
)
"""Any jobs."""
unobserved_cells = st.lists(
    st.builds(UnobservedCell, labels=_lines, price=st.sampled_from(PRICES), gpu_time=st.integers(1, 10**19)), max_size=8
)
"""Any time in gaps."""

lost_cells = st.lists(
    st.builds(
        LostCell,
        labels=_lines,
        price=st.sampled_from(PRICES),
        gpu_time=st.integers(1, 10**19),
        is_upper_bound=st.booleans(),
    ),
    max_size=8,
)
"""Any time that preemptions destroyed."""

usages = st.lists(
    st.builds(
        lambda line, paid, measured, used, energy: usage_cell(
            line, MeasuredTime((line,), paid, measured, min(used, measured), 0, energy)
        ),
        st.sampled_from(["red", "blue"]),
        st.sampled_from(PRICES[:4]),
        st.integers(1, 10**18),
        st.integers(0, 10**18),
        st.integers(0, 10**12),
    ),
    max_size=8,
)
"""Any measured usage, in one currency and unpriced."""


class Billed(NamedTuple):
    """Cells with what was measured and lost of each."""

    cells: list[Cell]
    usage: list[UsageCell]
    lost: list[LostCell]


@st.composite
def _billed(draw: st.DrawFn) -> Billed:
    """Amounts near the decimals that are shown, so that rounding decides."""
    found = Billed([], [], [])
    for _ in range(draw(st.integers(0, 8))):
        labels = tuple(draw(st.sampled_from(["red", "blue"])) for _ in range(1 + 3))
        paid, time = draw(st.sampled_from(PRICES)), draw(st.integers(1, 3000)) * GPU_HOUR // 1000
        measured, lost = (draw(st.sampled_from([0, time // 3, 9 * time // 10, time])) for _ in range(2))
        idle = draw(st.integers(0, measured))
        state = draw(st.sampled_from(["starting", "gang_wait", "running", "terminating"]))
        found.cells.append(Cell(labels=labels, state=state, price=paid, gpu_time=time))
        usage = MeasuredTime(labels, paid, measured, measured - idle, 0, 0)
        found.usage.append(UsageCell(labels=labels, price=paid, usage=usage))
        found.lost.append(LostCell(labels=labels, price=paid, gpu_time=lost, is_upper_bound=False))
    return found


billed = _billed()
"""Bills by `TEAM_BY`, whose parts are parts of their wholes."""
