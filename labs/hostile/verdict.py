"""Whether the honest tenants' bills are the truth, and what the hostile one got on its own."""

from collections.abc import Iterator
from decimal import Decimal

from labs.hostile.honest import NAMESPACES, Life, planned, team_of
from tests.behaviour.product import PRICE, SEGMENTS, Product, Samples
from tests.behaviour.published import exported, published
from tests.behaviour.recorder import Bill, Record

TEAMS = {namespace: team_of(namespace) for namespace in NAMESPACES}
OVERCOUNT_GPU_SECONDS = 12.0
"""A counter may be ahead by what accrues between an end and its news: 3 s of 4 GPUs, all in one group."""


def bill_of(product: Product, record: Record) -> Bill:
    """What the ledger says of the pods on record."""
    bill = Bill()
    for uid, tier, tenant, state, quantity, start_us, end_us, price in product.query(SEGMENTS):
        if uid in record.forms:
            bill.add((tier, tenant, state), quantity * (end_us - start_us), Decimal(price))
    return bill


def ledger_deviations(product: Product, record: Record) -> Iterator[str]:
    """Where the ledger differs from the truth, by tier, tenant and state; there is no tolerance."""
    truth, found = record.bill(teams=TEAMS, per_gpu_hour=PRICE), bill_of(product, record)
    for group in sorted(truth.time.keys() | found.time.keys()):
        ours, true = ((bill.time.get(group, 0), bill.cost.get(group, 0)) for bill in (found, truth))
        if ours != true:
            yield f"ledger {'/'.join(group)}: {ours[0] / 1e12} GPU-s, truly {true[0] / 1e12}"


def counter_deviations(samples: Samples, record: Record) -> Iterator[str]:
    """Where counters of honest tenants are behind the truth, or ahead by more than news are late."""
    shown = published(samples)
    truth = exported(record.bill(teams=TEAMS, per_gpu_hour=PRICE))
    teams = set(TEAMS.values())
    for group in sorted(truth.keys() | {group for group in shown if group[2] in teams}):
        ahead = shown.get(group, 0.0) - truth.get(group, 0.0)
        most = OVERCOUNT_GPU_SECONDS * (1 if group[0] == "time" else float(PRICE) / 3600)
        if not -1e-6 <= ahead <= most:
            yield f"counter {'/'.join(group)}: {shown.get(group, 0.0)}, truly {truth.get(group, 0.0)}"


def ahead(samples: Samples, record: Record) -> float:
    """GPU-seconds by which the counters of honest tenants are ahead of the truth."""
    shown, truth = published(samples), exported(record.bill(teams=TEAMS, per_gpu_hour=PRICE))
    return sum(shown.get(group, 0.0) - value for group, value in truth.items() if group[0] == "time")


def hostile_gpu_seconds(samples: Samples) -> float:
    """Of everybody who is not honest, `other` included."""
    honest = set(TEAMS.values())
    return sum(v for group, v in published(samples).items() if group[0] == "time" and group[2] not in honest)


def true_seconds(record: Record) -> dict[tuple[str, str, str], float]:
    """GPU-seconds by tier, tenant and state."""
    return {group: v / 10**12 for group, v in record.bill(teams=TEAMS, per_gpu_hour=PRICE).time.items()}


def ran(record: Record) -> dict[str, float]:
    """GPU-seconds of the state `running` by team, by the truth."""
    found: dict[str, float] = {}
    for (_, tenant, state), seconds in true_seconds(record).items():
        if state == "running":
            found[tenant] = found.get(tenant, 0) + seconds
    return found


def unplanned(record: Record, plan: list[Life]) -> Iterator[str]:
    """Teams that ran for another time than planned: then kwok came late, and both runs are not quite the same."""
    actual = ran(record)
    for team, seconds in planned(plan).items():
        if actual.get(team) != seconds:
            yield f"{team} ran for {actual.get(team)} GPU-s, not {seconds}"
