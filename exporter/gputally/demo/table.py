"""Tables of the fleet, with a row for each tier and each tenant, and the latest events."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from rich.table import Table
from rich.text import Text

from gputally.accounting.fleet.active_pods import pending
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.terms.tier import tier_of_pod
from gputally.accounting.totals.total import Total
from gputally.answers.verdict_words import REASONS
from gputally.model.disruptions import Victim
from gputally.model.node_record import CapacityState
from gputally.model.pod_record import PodRecord
from gputally.model.units import COST_UNIT, GPU, GPU_HOUR, US_PER_SECOND, to_datetime

WIDE: Final = 110
"""From this width on, tables have all columns and long heads."""
_HEADS: Final = ("GPUs now", "pending", "GPU-hours", "starting", "used", "cost", "idle")
_SHORT: Final = {"GPUs now": "GPUs", "GPU-hours": "GPU-h"}
_MONEY: Final = ("cost", "idle")


class _Line:
    """The figures of one group, in the units of the totals."""

    def __init__(self) -> None:
        self.slope = self.time = self.starting = self.cost = self.pending = self.preempted = 0
        self.measured = self.used = self.idle_cost = 0

    @property
    def used_share(self) -> str:
        """The used share of the time that agents measured; empty without measurements."""
        return f"{self.used / self.measured:.0%}" if self.measured else ""

    def cells(self, *, last: str, is_wide: bool) -> Iterator[Text | str]:
        """The figures as texts, `last` in the last column."""
        yield Text(f"{self.slope / GPU:g}", style="green" if self.slope else "dim")
        yield Text(str(self.pending), style="yellow" if self.pending else "dim")
        yield f"{self.time / GPU_HOUR:.2f}"
        if is_wide:
            yield f"{self.starting / GPU_HOUR:.2f}"
        yield self.used_share
        yield f"{Decimal(self.cost) / COST_UNIT:.2f}"
        yield f"{Decimal(self.idle_cost) / COST_UNIT:.2f}"
        yield last


def tier_table(fleet: Fleet, *, now_us: int, width: int) -> Table:
    """Tiers by name, with the exact totals at `now_us`."""
    lines = _lines(fleet, now_us, part=0, pending_of=lambda record: tier_of_pod(record, fleet.rules))
    for labels, series in fleet.truth(Total.PREEMPTIONS):
        lines.setdefault(labels[0], _Line()).preempted += series.at(now_us)
    return _table("tier", lines, {name: str(line.preempted) for name, line in lines.items()}, fleet, width)


def tenant_table(fleet: Fleet, *, now_us: int, width: int, quotas: Mapping[str, int]) -> Table:
    """Tenants by name, with the exact totals at `now_us` and the GPUs of their `quotas`, which are by namespace."""
    tenant_of = {record.namespace: fleet.tenant_of(record) for record in fleet.records}
    allowed: dict[str, int] = {}
    for namespace, gpus in quotas.items():
        if tenant := tenant_of.get(namespace):
            allowed[tenant] = allowed.get(tenant, 0) + gpus
    lines = _lines(fleet, now_us, part=1, pending_of=fleet.tenant_of)
    return _table("tenant", lines, {name: str(gpus) for name, gpus in allowed.items()}, fleet, width)


def _lines(fleet: Fleet, now_us: int, *, part: int, pending_of: Callable[[PodRecord], str]) -> dict[str, _Line]:
    lines: dict[str, _Line] = {}
    for labels, series in fleet.truth(Total.ALLOCATED):
        line = lines.setdefault(labels[part], _Line())
        line.slope += series.b
        line.time += series.at(now_us)
        line.starting += series.at(now_us) if labels[3] == "starting" else 0
    for labels, series in fleet.truth(Total.COST):
        lines.setdefault(labels[part], _Line()).cost += series.at(now_us)
    for total, name in ((Total.MEASURED, "measured"), (Total.USED, "used"), (Total.IDLE_COST, "idle_cost")):
        for labels, series in fleet.truth(total):
            line = lines.setdefault(labels[part], _Line())
            setattr(line, name, getattr(line, name) + series.at(now_us))
    for record in fleet.pending_records():
        lines.setdefault(pending_of(record), _Line()).pending += 1
    return lines


def _table(title: str, lines: dict[str, _Line], last: Mapping[str, str], fleet: Fleet, width: int) -> Table:
    is_wide, currency = width >= WIDE, _currency(fleet)
    last_head = "preempted" if title == "tier" else "quota" if last else ""
    found = Table(box=None, pad_edge=False, header_style="bold", width=min(width, WIDE))
    found.add_column(title, ratio=1, no_wrap=True, overflow="ellipsis")
    for head in (*_HEADS, last_head):
        if is_wide or head != "starting":
            shown = head if is_wide else _SHORT.get(head, head)
            found.add_column(f"{shown} {currency}".strip() if head in _MONEY else shown, justify="right", no_wrap=True)
    for name in sorted(lines):
        found.add_row(name, *lines[name].cells(last=last.get(name, ""), is_wide=is_wide))
    return found


def _currency(fleet: Fleet) -> str:
    return next((labels[-1] for labels, _ in fleet.truth(Total.COST)), "")


def totals_line(fleet: Fleet) -> str:
    """GPUs by state, pending pods and cost per hour of the whole fleet."""
    states: dict[str, int] = {}
    for labels, series in fleet.truth(Total.CAPACITY):
        states[labels[2]] = states.get(labels[2], 0) + series.b
    overcommitted = states.pop(CapacityState.OVERCOMMITTED, 0)
    parts = ", ".join(f"{gpus / GPU:g} {state}" for state, gpus in sorted(states.items()) if gpus)
    waiting = len(fleet.pending_records())
    cost = sum(series.b for _, series in fleet.truth(Total.COST)) * 3600 * US_PER_SECOND
    price = f"; allocated GPUs cost {Decimal(cost) / COST_UNIT:.2f} {_currency(fleet)}/h" if cost else ""
    pods = "1 pod waits" if waiting == 1 else f"{waiting} pods wait"
    return f"{(sum(states.values()) - overcommitted) / GPU:g} GPUs: {parts or 'none'}; {pods}{price}"


def events(fleet: Fleet, preempted: Iterable[Victim], *, now_us: int, most: int) -> list[Text]:
    """Pods that were `preempted` last, and those that have waited longest; at most `most` lines, the latest first."""
    victims = defaultdict[tuple[int, str], list[Victim]](list)
    for each in preempted:
        victims[each.decided_us // US_PER_SECOND, _preemptor(each)].append(each)
    found = [(second * US_PER_SECOND, Text(_took(tier, lost), style="red")) for (second, tier), lost in victims.items()]
    for pod in pending(fleet)[:most]:
        minutes = (now_us - pod.since_us) / US_PER_SECOND / 60
        verdict = fleet.verdict_of(pod.uid)
        why = f" ({REASONS[verdict.reason].phrase})" if verdict else ""
        text = f"{pod.tier} waits for {_gpus(pod.quantity)}, {minutes:.0f} min: {pod.namespace}/{pod.name}{why}"
        found.append((pod.since_us, Text(text, style="yellow")))
    latest = sorted(found, key=lambda event: event[0], reverse=True)[:most]
    return [Text(f"{to_datetime(at_us):%H:%M:%S} ").append_text(text) for at_us, text in latest]


def _preemptor(victim: Victim) -> str:
    by = victim.by and victim.by.preemptor
    return by.tier if by and by.tier else "an unknown tier"


def _took(tier: str, preempted: Sequence[Victim]) -> str:
    """The preemptions of one second, so that those of a large job are one line; a single one names its pod."""
    quantities = Counter[str]()
    for each in preempted:
        quantities[each.victim_tier] += each.quantity
    lost = ", ".join(f"{quantity / GPU:g} of {victim}" for victim, quantity in quantities.most_common())
    [first, *others] = preempted
    pods = f"{len(preempted)} pods" if others else f"{first.victim_namespace}/{first.victim_name}"
    return f"{tier} took {_gpus(quantities.total())}: {lost} ({pods})"


def _gpus(quantity: int) -> str:
    return "1 GPU" if quantity == GPU else f"{quantity / GPU:g} GPUs"
