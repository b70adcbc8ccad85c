"""Why the cost of a line changed: new and ended jobs, quantity, mix and price, which add up to the difference."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from msgspec import Struct

from gputally.ledger.records import Window
from gputally.model.units import US_PER_HOUR
from gputally.reports.cells import JobCell

CAUSES: Final = ("new_jobs", "ended_jobs", "quantity", "mix", "price")
"""The fields of a change that add up to the difference."""

_Key = tuple[tuple[str, ...], str]
"""The labels and currency of a line."""


class CostChange(Struct, frozen=True, kw_only=True):
    """The change of one line's cost between two periods. All are cost, see `COST_UNIT`.

    `new_jobs` is the cost of jobs that only the later period has, `ended_jobs` minus that of jobs that only the earlier
    one has. For the other jobs, with GPU-time q and price p by GPU model, tier and purchase option, in both periods
    (q0, p0 and q1, p1):

    - `price` is the sum of q1 (p1 - p0);
    - `quantity` is the change of all GPU-time at the earlier average price;
    - `mix` is the rest of the sum of (q1 - q0) p0: from models, tiers or options to dearer or cheaper ones.

    What was used only in one period has the price of that one in both. Unpriced time has the price 0.
    """

    labels: tuple[str, ...]
    currency: str
    before: Fraction
    after: Fraction
    new_jobs: Fraction
    ended_jobs: Fraction
    quantity: Fraction
    mix: Fraction
    price: Fraction


def compare(before: Iterable[JobCell], after: Iterable[JobCell]) -> tuple[CostChange, ...]:
    """The changes of all lines that either period has, the largest first."""
    earlier, later = list(before), list(after)
    currencies = sorted({cell.currency for cell in (*earlier, *later) if cell.price})
    unpriced = currencies[0] if len(currencies) == 1 else ""
    periods = _by_line(earlier, unpriced), _by_line(later, unpriced)
    keys = periods[0].keys() | periods[1].keys()
    changes = [_change(key, periods[0].get(key, {}), periods[1].get(key, {})) for key in keys]
    return tuple(sorted(changes, key=lambda each: (each.currency, -abs(each.after - each.before), each.labels)))


def length_note(after: Window, before: Window) -> str:
    """What a reader must know of periods of different lengths; empty if they are equally long."""
    now, then = (f"{(each.end_us - each.start_us) / US_PER_HOUR:,.1f} h" for each in (after, before))
    return f"Compares {now} with {then}: the change of quantity includes that." if now != then else ""


class _Sum(Struct):
    gpu_time: int = 0
    cost: int = 0

    @property
    def price(self) -> Fraction:
        return Fraction(self.cost, self.gpu_time)


_Jobs = Mapping[tuple[str, ...], Mapping[tuple[str, ...], _Sum]]
"""The sums of a line by job, then by what affects the price."""


def _by_line(cells: Iterable[JobCell], unpriced: str) -> dict[_Key, _Jobs]:
    lines: dict[_Key, dict[tuple[str, ...], dict[tuple[str, ...], _Sum]]] = {}
    for cell in cells:
        jobs = lines.setdefault((cell.labels, cell.currency or unpriced), {})
        found = jobs.setdefault(cell.job, {}).setdefault(cell.kind, _Sum())
        found.gpu_time += cell.gpu_time
        found.cost += cell.cost
    return dict(lines)


def _change(key: _Key, before: _Jobs, after: _Jobs) -> CostChange:
    new, ended = after.keys() - before.keys(), before.keys() - after.keys()
    both = before.keys() & after.keys()
    quantity, mix, price = _effects(_kinds(before, both), _kinds(after, both))
    return CostChange(
        labels=key[0],
        currency=key[1],
        before=_cost(before, before.keys()),
        after=_cost(after, after.keys()),
        new_jobs=_cost(after, new),
        ended_jobs=-_cost(before, ended),
        quantity=quantity,
        mix=mix,
        price=price,
    )


def _cost(jobs: _Jobs, chosen: Iterable[tuple[str, ...]]) -> Fraction:
    return Fraction(sum(each.cost for job in chosen for each in jobs[job].values()))


def _kinds(jobs: _Jobs, chosen: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], _Sum]:
    """The sums of the chosen jobs by what affects the price."""
    found: defaultdict[tuple[str, ...], _Sum] = defaultdict(_Sum)
    for job in chosen:
        for kind, each in jobs[job].items():
            found[kind].gpu_time += each.gpu_time
            found[kind].cost += each.cost
    return {kind: each for kind, each in found.items() if each.gpu_time}


def _effects(
    before: Mapping[tuple[str, ...], _Sum], after: Mapping[tuple[str, ...], _Sum]
) -> tuple[Fraction, Fraction, Fraction]:
    """Quantity, mix and price."""
    prices = {kind: each.price for kind, each in (*after.items(), *before.items())}  # the earlier one where both have
    times = {kind: (_time(before, kind), _time(after, kind)) for kind in prices}
    price = sum((after[kind].cost - after[kind].gpu_time * prices[kind] for kind in after), Fraction())
    volume = sum(((now - then) * prices[kind] for kind, (then, now) in times.items()), Fraction())
    then = sum(each.gpu_time for each in before.values())
    more = sum(each.gpu_time for each in after.values()) - then
    quantity = more * Fraction(sum(each.cost for each in before.values()), then) if then else Fraction()
    return quantity, volume - quantity, price


def _time(sums: Mapping[tuple[str, ...], _Sum], kind: tuple[str, ...]) -> int:
    return sums[kind].gpu_time if kind in sums else 0
