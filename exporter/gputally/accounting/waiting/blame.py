"""What a wait with some verdict is charged to, and who occupies what the pod waits for.

The rule: among the pods that the verdict names on its node, the tier and tenant that hold most GPUs there; of equal
ones, the first by name. Pods without GPUs count for nobody.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from gputally.model.pod_record import PodRecord
from gputally.model.verdicts import Reason, Verdict
from gputally.model.waits import CAUSE_OF, Occupant, WaitCause

_BY_NOBODY = (WaitCause.QUOTA, WaitCause.GANG, WaitCause.GATES, WaitCause.OTHER)
"""These would keep a pod waiting on empty nodes, too."""
_BY_PRIORITY = (Reason.CAPACITY, Reason.INVERSION)
_BY_USE = (Reason.CAPACITY, Reason.INVERSION, Reason.NEVER_PREEMPTS, Reason.PREEMPTING, Reason.FRAGMENTED)
"""Idle pods that occupy the node are the cause of these, rather than the priorities."""


class Blame(NamedTuple):
    """The cause of a wait, and the occupant, if pods with GPUs hold what is needed: `holders`, by UID, on `node`."""

    cause: WaitCause
    occupant: Occupant | None = None
    node: str = ""
    holders: tuple[str, ...] = ()


def blame(
    verdict: Verdict,
    priority: int,
    records: Mapping[str, PodRecord],
    *,
    is_idle: Callable[[PodRecord], bool],
) -> Blame:
    """What the wait of a pod of that priority is charged to."""
    cause = CAUSE_OF[verdict.reason]
    found = {} if cause in _BY_NOBODY else _occupants(verdict, records)
    if not found:
        return Blame(cause)
    occupant = max(sorted(found), key=lambda each: sum(_quantity(record) for record in found[each]))
    holders = found[occupant]
    by = occupant, holders[0].node, tuple(sorted(each.uid for each in holders))
    if verdict.reason in _BY_USE and all(map(is_idle, holders)):
        return Blame(WaitCause.IDLE_ALLOCATION, *by)
    if verdict.reason in _BY_PRIORITY:
        is_outranked = any((record.priority or 0) > priority for record in holders)
        cause = WaitCause.CAPACITY if is_outranked else WaitCause.NOT_PREEMPTIBLE
    return Blame(cause, *by)


def _occupants(verdict: Verdict, records: Mapping[str, PodRecord]) -> dict[Occupant, list[PodRecord]]:
    found: dict[Occupant, list[PodRecord]] = {}
    node = ""
    for uid in _named(verdict):
        record = records.get(uid)
        if record and record.terms and record.node == (node := node or record.node):
            terms = record.terms[-1]
            found.setdefault(Occupant(terms.tier, terms.tenant), []).append(record)
    return found


def _named(verdict: Verdict) -> Iterable[str]:
    """The pods that the verdict names, each once."""
    return dict.fromkeys((*(uid for each in verdict.obstacles for uid in each.pods), *verdict.victims))


def _quantity(record: PodRecord) -> int:
    return sum(quantity for _, quantity in record.terms[-1].quantities)
