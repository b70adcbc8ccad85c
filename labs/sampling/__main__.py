"""The bill of a trace with a price change, by OpenCost's formula and by gputally: `python -m labs.sampling`."""

import argparse
import sys
import tempfile
from pathlib import Path

from labs.sampling.bills import Error, errors, exact_bill, ledger_bill, month_of, sampled_bill
from tests.behaviour.traces import file, rows_of

_TRACES = ("helios15k_user", "philly15k_user")
_TOLERANCE = 0.01


def main() -> int:
    """Print the errors by tenant of both; 1 if gputally's are not 0."""
    parser = argparse.ArgumentParser(prog="python -m labs.sampling", description=__doc__)
    parser.add_argument("--resolution", type=int, default=300, metavar="SECONDS", help="between samples (default: 300)")
    given = parser.parse_args()
    return max(_compare(trace, given.resolution) for trace in _TRACES)


def _compare(trace: str, resolution: int) -> int:
    rows = month_of(rows_of(file(f"{trace}.csv.gz")))
    exact = exact_bill(rows)
    with tempfile.TemporaryDirectory() as folder:
        ours = errors(ledger_bill(file(f"{trace}.csv.gz"), Path(folder)), exact)
    sampled = errors(sampled_bill(rows, resolution), exact)
    sys.stdout.write(
        f"{trace}: {len(rows)} jobs of {len(exact)} tenants, {float(sum(exact.values())):,.2f} USD; "
        "the price halves in the middle of the month\n"
    )
    for name, found in (("gputally", ours), (f"OpenCost's formula, {resolution} s", sampled)):
        sys.stdout.write(f"  {name}: {summary(found)}\n")
    return 0 if all(not each.money for each in ours) else 1


def summary(found: list[Error]) -> str:
    """The error of the whole bill, and how those of tenants are distributed."""
    relative = sorted(each.relative for each in found)
    wrong = sum(abs(each.relative) > _TOLERANCE for each in found)
    money = sum(each.money for each in found)
    return (
        f"total {money:+,.2f} USD; by tenant from {relative[0]:+.1%} to {relative[-1]:+.1%}, median "
        f"{relative[len(relative) // 2]:+.2%}; {wrong} of {len(found)} tenants are wrong by more than 1 %"
    )


if __name__ == "__main__":
    sys.exit(main())
