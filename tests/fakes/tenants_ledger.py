"""A ledger with three tenants, whose names are hard to tell apart and to escape."""

from pathlib import Path

from msgspec.structs import replace

from gputally.ledger.sqlite.writer import SqliteLedger
from tests.contract.records import PRICE, pod, segment, step

HOUR = 3600
BLUE = "<blue>"
CLUSTER = "three-tenants"
PODS = [
    pod("a", segment(HOUR, 2 * HOUR), segment(2 * HOUR, 4 * HOUR)),
    pod("b", segment(2 * HOUR, 3 * HOUR, tenant=BLUE, price=replace(PRICE, key="book/b")), job="infer"),
    pod("c", segment(HOUR, 3 * HOUR, tenant=f"{BLUE}s", price=None), namespace="other"),
]
RED = PODS[0].terms[0].tenant


def tenants_ledger(folder: Path) -> Path:
    """Red has 3 GPU-hours, blue 1 at a price of its own, and blues 2 without one; accounted from 00:16:40 to 05:00."""
    path = folder / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(*PODS, at=5 * HOUR))
    return path
