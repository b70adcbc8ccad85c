"""A text table of the fleet, with a line for each tier and each tenant."""

from collections.abc import Callable, Iterable
from decimal import Decimal

from gputally.accounting.fleet import Fleet
from gputally.accounting.terms.tier import tier_of_pod
from gputally.accounting.totals.totals import Total
from gputally.model.pod import PodRecord
from gputally.model.units import COST_UNIT, GPU, GPU_HOUR

_HEADS = ("GPUs now", "pending", "GPU-hours", "starting", "used", "cost", "idle", "preempted")
_MONEY = ("cost", "idle")


class _Line:
    """One group's figures, in the units of the totals."""

    def __init__(self) -> None:
        self.slope = self.time = self.starting = self.cost = self.pending = self.preempted = 0
        self.measured = self.used = self.idle_cost = 0

    @property
    def used_share(self) -> str:
        """The used share of the time that agents measured; empty without measurements."""
        return f"{self.used / self.measured:.0%}" if self.measured else ""


def table(fleet: Fleet, *, now_us: int) -> str:
    """Tiers by name, then tenants by name, with the exact totals at `now_us`."""
    tiers = _lines(fleet, now_us, part=0, pending_of=lambda record: tier_of_pod(record, fleet.rules))
    for labels, series in fleet.totals.truth(Total.PREEMPTIONS):
        tiers.setdefault(labels[0], _Line()).preempted += series.at(now_us)
    tenants = _lines(fleet, now_us, part=1, pending_of=fleet.pods.namespaces.tenant)
    currency = next((labels[-1] for labels, _ in fleet.totals.truth(Total.COST)), "")
    return "\n".join([*_section("tier", tiers, currency), "", *_section("tenant", tenants, currency)])


def _lines(fleet: Fleet, now_us: int, *, part: int, pending_of: Callable[[PodRecord], str]) -> dict[str, _Line]:
    lines: dict[str, _Line] = {}
    for labels, series in fleet.totals.truth(Total.ALLOCATED):
        line = lines.setdefault(labels[part], _Line())
        line.slope += series.b
        line.time += series.at(now_us)
        line.starting += series.at(now_us) if labels[3] == "starting" else 0
    for labels, series in fleet.totals.truth(Total.COST):
        lines.setdefault(labels[part], _Line()).cost += series.at(now_us)
    for total, name in ((Total.MEASURED, "measured"), (Total.USED, "used"), (Total.IDLE_COST, "idle_cost")):
        for labels, series in fleet.totals.truth(total):
            line = lines.setdefault(labels[part], _Line())
            setattr(line, name, getattr(line, name) + series.at(now_us))
    for uid in fleet.pods.index.pending:
        lines.setdefault(pending_of(fleet.pods.records[uid]), _Line()).pending += 1
    return lines


def _section(title: str, lines: dict[str, _Line], currency: str) -> Iterable[str]:
    heads = [f"{head} {currency}".strip() if head in _MONEY else head for head in _HEADS]
    yield f"{title:<22}" + "".join(f"{head:>12}" for head in heads)
    for name in sorted(lines):
        line = lines[name]
        cells = (
            f"{line.slope / GPU:g}",
            str(line.pending),
            f"{line.time / GPU_HOUR:.2f}",
            f"{line.starting / GPU_HOUR:.2f}",
            line.used_share,
            f"{Decimal(line.cost) / COST_UNIT:.2f}",
            f"{Decimal(line.idle_cost) / COST_UNIT:.2f}",
            str(line.preempted) if title == "tier" else "",
        )
        yield f"{name:<22}" + "".join(f"{cell:>12}" for cell in cells)
