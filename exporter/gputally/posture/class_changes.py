"""What changed in the PriorityClasses during a time, from their versions in a ledger."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby

from msgspec import Struct

from gputally.ledger.records import PriorityClassRecord, Window
from gputally.model.units import to_datetime
from gputally.posture.wording import listed


class ClassChange(Struct, frozen=True, kw_only=True):
    """When a class was created, changed or deleted, and what changed."""

    at: datetime
    name: str
    what: str


def class_changes(versions: Iterable[PriorityClassRecord], window: Window) -> tuple[ClassChange, ...]:
    """The changes in the window, in the order of time. Those before the first known version are not known."""
    by_name = sorted(versions, key=lambda each: (each.name, each.from_us))
    found = (change for _, own in groupby(by_name, key=lambda each: each.name) for change in _changes(list(own)))
    within = [(us, name, what) for us, name, what in found if window.start_us <= us < window.end_us]
    return tuple(ClassChange(at=to_datetime(us), name=name, what=what) for us, name, what in sorted(within))


def _changes(versions: Sequence[PriorityClassRecord]) -> Iterator[tuple[int, str, str]]:
    """Time (µs), name and change of all versions of one class, by their start."""
    for before, new in zip((None, *versions), (*versions, None), strict=False):
        if before and before.to_us is not None and (new is None or new.from_us > before.to_us):
            yield before.to_us, before.name, "deleted"
        if new:
            yield new.from_us, new.name, _difference(before, new)


def _difference(before: PriorityClassRecord | None, new: PriorityClassRecord) -> str:
    if before is None:
        default = ", the globalDefault" if new.is_default else ""
        return f"created: value {new.value}, preemptionPolicy {new.preemption_policy}{default}"
    found = []
    if before.value != new.value:
        found.append(f"value {new.value} instead of {before.value}")
    if before.preemption_policy != new.preemption_policy:
        found.append(f"preemptionPolicy {new.preemption_policy} instead of {before.preemption_policy}")
    if before.is_default != new.is_default:
        found.append("now the globalDefault" if new.is_default else "no longer the globalDefault")
    return listed(found) if found else "created again, with the same value and preemptionPolicy"
