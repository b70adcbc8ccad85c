"""Bounded labels: as many values as the limits allow are exported as they are, further ones as `other`.

A value that has not grown for long gives way to a new one when there is no room. What was counted of it is kept, to
go on from should it come back.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from gputally.model.rules import Limits
from gputally.model.units import US_PER_HOUR, US_PER_SECOND

OTHER: Final = "other"
_UNBOUNDED: Final = (OTHER, "unknown")
"""What stands for values, and takes no room."""
_LOOK_US: Final = 60 * US_PER_SECOND
_NOTED_US: Final = 600 * US_PER_SECOND
"""The time of a value's last growth is noted once in so long."""
_NEVER: Final = 0
_OF_POD: Final = ("tier", "tenant", "gpu_model")
_KEPT: Final = 4
"""Of how many evicted values the amounts are kept, in multiples of the limit."""

Value = tuple[str, str]
"""A label and its value."""
PodLabels = tuple[str, str, str]
"""A pod's tier, tenant and gpu_model."""
Growth = Callable[[], tuple[set[Value], set[Value]]]
"""The values of which anything has grown since the last call, and those of which there is anything."""


class KnownValue(Struct, frozen=True):
    """When anything of a value last grew, and since when it is evicted, if it is (µs)."""

    grew_us: int
    evicted_us: int | None = None


class LabelLimiter:
    """Which label values are exported. `state` rises with each that leaves or comes back."""

    def __init__(self, limits: Limits, saved: Mapping[Value, KnownValue] | None = None, *, now_us: int = 0) -> None:
        self.values: dict[str, dict[str, int]] = {"tier": {}, "tenant": {}, "gpu_model": {}, "pool": {}}
        """Those exported, with when they last grew."""
        self.fresh: dict[Value, KnownValue | None] = {}
        """What changed since it was last kept; None for values that are forgotten."""
        self.refusals: dict[str, int] = dict.fromkeys(self.values, 0)
        self.state = 0
        self._limits = dict(
            zip(self.values, (limits.tiers, limits.tenants, limits.gpu_models, limits.pools), strict=True)
        )
        self._idle_us = limits.idle_hours * US_PER_HOUR
        self._evicted: dict[str, dict[str, int]] = {label: {} for label in self.values}
        """Those that gave way, the first to go first."""
        self._pinned: set[Value] = set()
        self._asked: set[Value] = set()
        self._asked_by_pods: set[PodLabels] = set()
        """Values asked for since the last look: whether anything of them grows now is only known with the next."""
        self._full: set[str] = set()
        """Labels for whose values there was no room since the last look."""
        self._refused: set[str] = set(self.values)
        """Labels of which a value may be shown as `other`, perhaps since the process before."""
        self._now_us = now_us
        self._next_look_us = 0
        for (label, value), each in sorted((saved or {}).items(), key=lambda pair: pair[1].evicted_us or 0):
            kept = self.values if each.evicted_us is None else self._evicted
            kept[label][value] = each.grew_us

    def exports(self, label: str, value: str) -> bool:
        """Whether series with this value are published."""
        return value in self.values[label] or value in _UNBOUNDED

    def keeps(self, label: str, value: str) -> bool:
        """Whether series with this value are kept, published or not; "" is what remains of those that are not."""
        return not value or self.exports(label, value) or value in self._evicted[label]

    def shown(self, label: str, value: str) -> str:
        """How a value is exported, without admitting it."""
        return value if value in self.values[label] else OTHER

    def foreseen(self, label: str, values: Collection[str]) -> dict[str, str]:
        """How values that hold nothing yet are exported: the first of them by name, as long as there is room.

        None is admitted.
        """
        known = self.values[label]
        room = max(0, self._limits[label] - len(known))
        named = {*[value for value in values if value not in known][:room], *known}
        return {value: value if value in named else OTHER for value in values}

    def limit(self, label: str, value: str) -> str:
        """`value` itself, or `other` when there is no room for it; each refusal is counted."""
        known = self.values[label]
        if value in known:
            self._asked.add((label, value))
            return value
        if not self.has_room(label):
            self.refusals[label] += 1
            self._full.add(label)
            self._refused.add(label)
            return OTHER
        if len(known) >= self._limits[label]:
            self._evict(label)
        if self._evicted[label].pop(value, None) is not None:
            self.state += 1
        self._note(label, value, self._now_us)
        return value

    def limit_pod(self, values: PodLabels) -> PodLabels:
        """`limit` for the tier, tenant and gpu_model of a pod; the same tuple if all are exported, as nearly always."""
        tier, tenant, gpu_model = values
        known = self.values
        if tier in known["tier"] and tenant in known["tenant"] and gpu_model in known["gpu_model"]:
            self._asked_by_pods.add(values)
            return values
        return self.limit("tier", tier), self.limit("tenant", tenant), self.limit("gpu_model", gpu_model)

    def pin(self, label: str, value: str) -> str:
        """Admit a value that follows from the configuration: it gives way to none."""
        self._pinned.add((label, value))
        return self.limit(label, value)

    def has_room(self, label: str) -> bool:
        """Whether one more value would be admitted."""
        return label not in self._full and (
            len(self.values[label]) < self._limits[label] or self._idle(label) is not None
        )

    def advance(self, now_us: int, growth: Growth) -> bool:
        """Let time pass; now and then look at what grew. True when there is room for values that were refused."""
        self._now_us = max(self._now_us, now_us)
        if now_us < self._next_look_us:
            return False
        self.look(growth)
        self._full.clear()
        relieved = {label for label in self._refused if self.has_room(label)}
        self._refused -= relieved
        return bool(relieved)

    def look(self, growth: Growth) -> None:
        """Note what grew, before any value can give way: also by what an earlier process kept, and noted too late."""
        self._next_look_us = self._now_us + _LOOK_US
        grown, there = growth()
        for label, known in self.values.items():
            for value, grew_us in tuple(known.items()):
                if (label, value) not in there:
                    if grew_us != _NEVER:
                        self._note(label, value, _NEVER)
                elif (label, value) in grown and self._now_us - grew_us >= _NOTED_US:
                    self._note(label, value, self._now_us)
        self._asked.clear()
        self._asked_by_pods.clear()

    def _note(self, label: str, value: str, grew_us: int) -> None:
        self.values[label][value] = grew_us
        self.fresh[label, value] = KnownValue(grew_us)

    def _idle(self, label: str) -> str | None:
        """The value that has not grown for longest, if that is long enough."""
        by_pods = {pair for labels in self._asked_by_pods for pair in zip(_OF_POD, labels, strict=True)}
        long_ago_us, kept = self._now_us - self._idle_us, self._pinned | self._asked | by_pods
        idle = [
            (grew_us, value)
            for value, grew_us in self.values[label].items()
            if grew_us < long_ago_us and (label, value) not in kept
        ]
        return min(idle)[1] if idle else None

    def _evict(self, label: str) -> None:
        """Take the room of an idle value; of those that left long before, forget the first if there are too many."""
        value = self._idle(label)
        assert value is not None
        evicted = self._evicted[label]
        evicted[value] = self.values[label].pop(value)
        self.fresh[label, value] = KnownValue(evicted[value], self._now_us)
        self.state += 1
        if len(evicted) > _KEPT * self._limits[label]:
            forgotten = next(iter(evicted))
            del evicted[forgotten]
            self.fresh[label, forgotten] = None
