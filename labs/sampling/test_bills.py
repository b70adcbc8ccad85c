"""Bills from samples differ from exact ones as the formula says; those of the ledger do not."""

from fractions import Fraction
from pathlib import Path

import pytest

from labs.sampling.bills import errors, exact_bill, ledger_bill, month_of, sampled_bill
from tests.behaviour.traces import Row, file, rows_of

DAY = 86_400


def row(start: int, end: int, *, tenant: str = "red") -> Row:
    return Row(name=tenant, tenant=tenant, qos="", gpu_type="", status="", milli=1000, start=start, end=end)


@pytest.mark.parametrize(
    ("start", "end", "seconds"), [(0, 3600, 3300), (1, 299, 0), (1, 301, 300), (299, 901, 600), (300, 600, 300)]
)
def test_a_pod_lasts_from_its_first_to_its_last_sample(start: int, end: int, seconds: int) -> None:
    """The price is 4 for half of the month, and 2 for the other half."""
    assert sampled_bill([row(start, end)], 300)["red"] == Fraction(3 * seconds, 3600)


def test_the_exact_bill_changes_its_price_at_once() -> None:
    assert exact_bill([row(15 * DAY - 3600, 15 * DAY + 3600)]) == {"red": 6}


def test_the_ledger_bills_every_tenant_of_a_trace_exactly(tmp_path: Path) -> None:
    trace = file("helios15k_user.csv.gz")

    found = errors(ledger_bill(trace, tmp_path), exact_bill(month_of(rows_of(trace))))

    assert len(found) == 95
    assert [each for each in found if each.money] == []
