"""Three bills of a month by tenant: exact, from samples as OpenCost computes it, and from a ledger of gputally.

The month is the first 30 days of a trace. After half of them, a GPU-hour costs 2.00 instead of 4.00 USD. OpenCost's
formula is that of its pkg/costmodel (allocation_helpers.go and metricsquerier.go, 2024-10): a pod lasts from its first
sample to its last one, or one resolution if it has a single one, and costs the price of its node averaged over the
window of the query.
"""

import contextlib
import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

from gputally.cli import main
from tests.behaviour.traces import Row

_DAY: Final = 86_400
_CHANGE: Final = 15 * _DAY
_MONTH: Final = 30 * _DAY
_BEFORE, _AFTER = Fraction(4), Fraction(2)
_GPU_HOUR: Final = 3_600_000
"""In seconds x thousandths of a GPU."""
_ZERO: Final = "2026-10-01"
_PRICES: Final = f"""\
kind: PriceBook
currency: USD
basis: gpu
rules:
  - match: {{default: true}}
    prices: [{{price: {_BEFORE}.00, effective_from: always}}, {{price: {_AFTER}.00, effective_from: 2026-10-16}}]
"""
Bill = Mapping[str, Fraction]
"""USD by tenant."""


class Error(NamedTuple):
    """The error of one tenant's bill, in USD and relative to the exact one."""

    tenant: str
    money: float
    relative: float


def month_of(rows: Iterable[Row]) -> list[Row]:
    """What ran in the month, and only that part."""
    return [row._replace(end=min(row.end, _MONTH)) for row in rows if row.start < _MONTH]


def exact_bill(rows: Iterable[Row]) -> Bill:
    """Every second at the price of that second."""
    found: defaultdict[str, Fraction] = defaultdict(Fraction)
    for row in rows:
        before = max(0, min(row.end, _CHANGE) - row.start)
        after = row.end - row.start - before
        found[row.tenant] += Fraction(row.milli, _GPU_HOUR) * (before * _BEFORE + after * _AFTER)
    return found


def sampled_bill(rows: Sequence[Row], resolution: int) -> Bill:
    """OpenCost's formula over the month."""
    average = (_CHANGE * _BEFORE + (_MONTH - _CHANGE) * _AFTER) / _MONTH
    found: defaultdict[str, Fraction] = defaultdict(Fraction)
    for row in rows:
        first, last = -(-row.start // resolution), -(-row.end // resolution) - 1
        seconds = 0 if last < first else resolution * max(last - first, 1)
        found[row.tenant] += Fraction(row.milli * seconds, _GPU_HOUR) * average
    return found


def ledger_bill(trace: Path, folder: Path) -> Bill:
    """What `gputally report` says after `gputally import`, by its own decimals."""
    prices, ledger = folder / "prices.yaml", folder / "history.db"
    prices.write_text(_PRICES)
    _run("import", str(trace), "--ledger", str(ledger), "--zero", _ZERO, "--prices.file", str(prices))
    report = (
        "report",
        "--ledger",
        str(ledger),
        "--window",
        "2026-10-01/2026-10-31",
        "--by",
        "tenant",
        "--output",
        "csv",
    )
    rows = csv.DictReader(io.StringIO(_run(*report, "--decimals", "9")))
    return {row["tenant"]: Fraction(Decimal(row["cost"])) for row in rows}


def _run(*arguments: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = main(arguments)
    if status:
        raise RuntimeError(f"gputally {arguments[0]} ended with status {status}")
    return out.getvalue()


def errors(bill: Bill, exact: Bill) -> list[Error]:
    """The errors of all tenants; those of less than a millionth, where reports round, are none."""
    found = []
    for tenant, cost in sorted(exact.items()):
        difference = bill.get(tenant, Fraction()) - cost
        money = 0.0 if abs(difference) < Fraction(1, 10**6) else float(difference)
        found.append(Error(tenant, money, money / float(cost) if cost else 0.0))
    return found
