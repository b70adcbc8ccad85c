"""The bill of each team: what it had in all, and its most expensive jobs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gputally.report.bill import Bill, bill_of, currency_of_unpriced
from gputally.report.cells import Cell, LineJobs, LostCell, UnobservedCell, UsageCell

TEAM_BY: Final = ("tenant", "job")
"""The dimensions by which the cells of a team bill are read: the tenant is the first column."""

Part = TypeVar("Part", Cell, LineJobs, LostCell, UsageCell, UnobservedCell)


class TeamBill(Struct, frozen=True, kw_only=True):
    """The `teams` by tenant, and for each of them, the highest cost first, its `jobs` without the tenant."""

    teams: Bill
    jobs: tuple[tuple[str, Bill], ...]


def team_bill_of(
    cells: Iterable[Cell],
    jobs: Iterable[LineJobs],
    usage: Iterable[UsageCell],
    *,
    lost: Iterable[LostCell] = (),
    unobserved: Sequence[UnobservedCell] | None = None,
) -> TeamBill:
    """Adds up cells by `TEAM_BY`; what is `unobserved` is None if it is not known."""
    every, sets, measured, losses = list(cells), list(jobs), list(usage), list(lost)
    gaps = None if unobserved is None else _by_tenant(unobserved)
    teams = bill_of(_by_tenant(every), _by_tenant(sets), _by_tenant(measured), lost=_by_tenant(losses), unobserved=gaps)
    of_cells, of_sets, of_usage = _of_tenants(every), _of_tenants(sets), _of_tenants(measured)
    of_losses = _of_tenants(losses)
    of_gaps, unpriced = _of_tenants(unobserved or ()), currency_of_unpriced(every)
    bills = (
        (
            each,
            bill_of(
                of_cells[each],
                of_sets[each],
                of_usage[each],
                lost=of_losses[each],
                unobserved=None if unobserved is None else of_gaps[each],
                unpriced=unpriced,
            ),
        )
        for each in dict.fromkeys(line.labels[0] for line in teams.lines)
    )
    return TeamBill(teams=teams, jobs=tuple(bills))


def _by_tenant(parts: Sequence[Part]) -> list[Part]:
    return [replace(part, labels=part.labels[:1]) for part in parts]


def _of_tenants(parts: Sequence[Part]) -> Mapping[str, list[Part]]:
    """The parts of each tenant, without it."""
    found = defaultdict[str, list[Part]](list)
    for part in parts:
        found[part.labels[0]].append(replace(part, labels=part.labels[1:]))
    return found
