"""Compares the honest tenants' bills to the truth, and sums the hostile tenant's usage."""

import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from labs.hostile.honest import NAMESPACES, QUEUED, QUEUED_GPUS, STUCK, TENANTS, Life, planned, team_of
from tests.behaviour.product import PRICE, SEGMENTS, Product, Samples
from tests.behaviour.published import exported, published
from tests.behaviour.recorder import Bill, Record

_FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"-[0-9.]+")
TEAMS = {namespace: team_of(namespace) for namespace in NAMESPACES}
OVERCOUNT_GPU_SECONDS = 12.0
"""Maximum overcount between an end and its watch event: 3 s of 4 GPUs, all in one group."""


def bill_of(product: Product, record: Record) -> Bill:
    """The ledger's bill for the recorded pods."""
    bill = Bill()
    for uid, tier, tenant, state, quantity, start_us, end_us, price in product.query(SEGMENTS):
        if uid in record.forms:
            bill.add((tier, tenant, state), quantity * (end_us - start_us), Decimal(price))
    return bill


def ledger_deviations(product: Product, record: Record) -> Iterator[str]:
    """Differences of the ledger from the truth, by tier, tenant and state, without tolerance."""
    truth, found = record.bill(teams=TEAMS, per_gpu_hour=PRICE), bill_of(product, record)
    for group in sorted(truth.time.keys() | found.time.keys()):
        ours, true = ((bill.time.get(group, 0), bill.cost.get(group, 0)) for bill in (found, truth))
        if ours != true:
            yield f"ledger {'/'.join(group)}: {ours[0] / 1e12} GPU-s, truly {true[0] / 1e12}"


def counter_deviations(samples: Samples, record: Record) -> Iterator[str]:
    """Honest tenants' counters below the truth, or above it by more than the event latency allows."""
    shown = published(samples)
    truth = exported(record.bill(teams=TEAMS, per_gpu_hour=PRICE))
    teams = set(TEAMS.values())
    for group in sorted(truth.keys() | {group for group in shown if group[2] in teams}):
        excess = shown.get(group, 0.0) - truth.get(group, 0.0)
        most = OVERCOUNT_GPU_SECONDS * (1 if group[0] == "time" else float(PRICE) / 3600)
        if not -1e-6 <= excess <= most:
            yield f"counter {'/'.join(group)}: {shown.get(group, 0.0)}, truly {truth.get(group, 0.0)}"


def formulas(cells: Iterable[str]) -> Iterator[str]:
    """Cells that a spreadsheet computes; a negative number is none."""
    yield from (cell for cell in cells if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell))


def disarmed(cells: Iterable[str]) -> int:
    """Cells whose text would be a formula without the apostrophe before it."""
    return sum(cell.startswith("'") and bool(_FORMULA.match(cell[1:])) for cell in cells)


def overcount(samples: Samples, record: Record) -> float:
    """GPU-seconds by which the honest tenants' counters exceed the truth."""
    shown, truth = published(samples), exported(record.bill(teams=TEAMS, per_gpu_hour=PRICE))
    return sum(shown.get(group, 0.0) - value for group, value in truth.items() if group[0] == "time")


def hostile_gpu_seconds(samples: Samples) -> float:
    """GPU-seconds of all tenants that are not honest, including `other`."""
    honest = {*TEAMS.values(), team_of(STUCK)}
    return sum(v for group, v in published(samples).items() if group[0] == "time" and group[2] not in honest)


def true_seconds(record: Record) -> dict[tuple[str, str, str], float]:
    """True GPU-seconds by tier, tenant and state."""
    return {group: v / 10**12 for group, v in record.bill(teams=TEAMS, per_gpu_hour=PRICE).time.items()}


def ran(record: Record) -> dict[str, float]:
    """True GPU-seconds in state `running`, by team."""
    found: dict[str, float] = {}
    for (_, tenant, state), seconds in true_seconds(record).items():
        if state == "running":
            found[tenant] = found.get(tenant, 0) + seconds
    return found


def unplanned(record: Record, plan: list[Life]) -> Iterator[str]:
    """Teams with other running times than planned, because kwok was late; then the runs are not identical."""
    actual = ran(record)
    for team, seconds in planned(plan).items():
        if actual.get(team) != seconds:
            yield f"{team} ran for {actual.get(team)} GPU-s, not {seconds}"


def uncharged_gpus(product: Product) -> float:
    """Of the honest Job in a queue, the GPUs whose wait the ledger does not have, or has too often."""
    rows = product.query(
        f"SELECT pods * quantity FROM uncreated_waits WHERE (namespace, name) = ('{TENANTS[0]}', '{QUEUED}')"
    )
    return max((abs(QUEUED_GPUS - quantity / 10**6) for (quantity,) in rows), default=float(QUEUED_GPUS))


def coarsest_wait(samples: Samples) -> float:
    """The smallest change that each counter of waits can still show, in GPU-seconds or units of the currency."""
    names = {f"gputally_{pods}_{what}_total" for pods in ("pending", "uncreated") for what in ("gpu_seconds", "cost")}
    return max(math.ulp(value) for (name, _), value in samples.items() if name in names)
