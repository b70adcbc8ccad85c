"""The bill of a month in plain Python: no code of gputally, only exported allocations and a price list.

    python recompute.py ALLOCATIONS.csv PRICES.json FROM TO

ALLOCATIONS.csv has tenant, tier, gpu_model, quantity (millionths of a GPU), start_us and until_us. PRICES.json has
`multipliers` by tier and `prices`: a list of gpu_model, since (ISO 8601) and price of a GPU-hour. Prints, by tenant,
exact GPU-hours and cost as fractions.
"""

import csv
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

Steps = list[tuple[int, Fraction]]
"""Since when a GPU-hour costs how much, by time."""


def us(text: str) -> int:
    at = datetime.fromisoformat(text)
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) * 10**6


def cost(steps: Steps, start: int, end: int) -> Fraction:
    """What one GPU costs from start to end."""
    total = Fraction()
    for place, (since, price) in enumerate(steps):
        until = steps[place + 1][0] if place + 1 < len(steps) else end
        total += price * Fraction(max(0, min(end, until) - max(start, since)), 3600 * 10**6)
    return total


def main(allocations: Path, prices: Path, first: int, after: int) -> Iterator[tuple[str, Fraction, Fraction]]:
    """Tenant, GPU-hours and cost of each allocation in the period."""
    book = json.loads(prices.read_text())
    steps: dict[str, Steps] = {}
    for each in book["prices"]:
        steps.setdefault(each["gpu_model"], []).append((us(each["since"]), Fraction(each["price"])))
    with allocations.open(newline="") as file:
        for row in csv.DictReader(file):
            start, end = max(int(row["start_us"]), first), min(int(row["until_us"]), after)
            if start < end:
                gpus = Fraction(int(row["quantity"]), 10**6)
                rate = gpus * Fraction(book["multipliers"].get(row["tier"], "1"))
                hours = gpus * Fraction(end - start, 3600 * 10**6)
                yield row["tenant"], hours, rate * cost(sorted(steps.get(row["gpu_model"], [])), start, end)


bill: dict[str, list[Fraction]] = {}
for tenant, *amounts in main(Path(sys.argv[1]), Path(sys.argv[2]), us(sys.argv[3]), us(sys.argv[4])):
    line = bill.setdefault(tenant, [Fraction(), Fraction()])
    line[:] = (sum(pair, Fraction()) for pair in zip(line, amounts, strict=True))
sys.stdout.write(json.dumps({tenant: list(map(str, line)) for tenant, line in bill.items()}))
