"""Cells with GPU-time in GPU-hours and prices in currency units."""

from decimal import Decimal

from hypothesis import strategies as st

from gputally.ledger.records import MeasuredTime
from gputally.model.price import Basis, Price, Purchase
from gputally.model.units import GPU_HOUR, PICO
from gputally.report.cells import Cell, UsageCell


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


def cell(
    hours: float,
    paid: Price | None,
    *,
    line: str = "red",
    job: str = "train",
    model: str = "H100",
    state: str = "running",
) -> Cell:
    return Cell((line,), ("ml", "Job", job), (model, "low", ""), state, paid, int(hours * GPU_HOUR))


PRICES = (None, price("2.21"), price("3.75"), price("0.1234567"), price("1.1", currency="EUR"))
cells = st.lists(
    st.builds(
        lambda line, job, model, state, paid, time: Cell(
            (line,), ("ml", "Job", job), (model, "low", ""), state, paid, time
        ),
        st.sampled_from(["red", "blue", "green"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["H100", "A100"]),
        st.sampled_from(["starting", "running", "terminating"]),
        st.sampled_from(PRICES),
        st.integers(1, 10**19),
    ),
    max_size=12,
)
"""Any cells, in two currencies and unpriced."""

usages = st.lists(
    st.builds(
        lambda line, paid, measured, used, energy: UsageCell(
            (line,), MeasuredTime((line,), paid, measured, min(used, measured), 0, energy)
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
