"""Limits the number of label values: up to the limit they are exported as they are, further ones as `other`.

If there is no room, a new value evicts one that has not grown for long. The amounts of evicted values are kept, and
continue if the value returns.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from gputally.model.rules import Limits
from gputally.model.units import US_PER_HOUR, US_PER_SECOND
from gputally.model.waits import NOBODY

OTHER: Final = "other"
_UNBOUNDED: Final = (OTHER, NOBODY, "unknown")
"""Placeholders, which take no room."""
_GROWTH_CHECK_US: Final = 60 * US_PER_SECOND
_NOTED_US: Final = 600 * US_PER_SECOND
"""How often the last growth of values is recorded."""
_NEVER: Final = 0
_OF_POD: Final = ("tier", "tenant", "gpu_model")
_KEPT: Final = 4
"""Limit of evicted values whose amounts are kept, in multiples of the label's limit."""

Value = tuple[str, str]
"""A label and its value."""
PodLabels = tuple[str, str, str]
"""A pod's tier, tenant and gpu_model."""
Growth = Callable[[], tuple[set[Value], set[Value]]]
"""The values that have grown since the last call, and all values with amounts."""


class KnownValue(Struct, frozen=True):
    """The last growth of a value, and its eviction if it is evicted (µs)."""

    grew_us: int
    evicted_us: int | None = None


class LabelLimiter:
    """The exported label values. `state` increases with each eviction or return."""

    def __init__(self, limits: Limits, saved: Mapping[Value, KnownValue] | None = None, *, now_us: int = 0) -> None:
        self.values: dict[str, dict[str, int]] = {"tier": {}, "tenant": {}, "gpu_model": {}, "pool": {}}
        """Exported values, with the time of their last growth."""
        self.fresh: dict[Value, KnownValue | None] = {}
        """Changes since the last drain; None for dropped values."""
        self.refusals: dict[str, int] = dict.fromkeys(self.values, 0)
        self.state = 0
        self._limits = dict(
            zip(self.values, (limits.tiers, limits.tenants, limits.gpu_models, limits.pools), strict=True)
        )
        self._idle_us = limits.idle_hours * US_PER_HOUR
        self._evicted: dict[str, dict[str, int]] = {label: {} for label in self.values}
        """Evicted values, in order of eviction."""
        self._pinned: set[Value] = set()
        self._asked: set[Value] = set()
        self._asked_by_pods: set[PodLabels] = set()
        """Values of pods since the last `record_growth`; the next one shows whether they grow."""
        self._full: set[str] = set()
        """Labels without room for a value since the last `record_growth`."""
        self._refused: set[str] = set(self.values)
        """Labels with values that may be exported as `other`, possibly since an earlier process."""
        self._now_us = now_us
        self._next_growth_check_us = 0
        for (label, value), each in sorted((saved or {}).items(), key=lambda pair: pair[1].evicted_us or 0):
            kept = self.values if each.evicted_us is None else self._evicted
            kept[label][value] = each.grew_us

    def exports(self, label: str, value: str) -> bool:
        """Whether series with this value are published."""
        return value in self.values[label] or value in _UNBOUNDED

    def keeps(self, label: str, value: str) -> bool:
        """Whether series with this value are kept, published or not; "" holds the sum of dropped ones."""
        return not value or self.exports(label, value) or value in self._evicted[label]

    def shown(self, label: str, value: str) -> str:
        """How a value is exported, without admitting it."""
        return value if value in self.values[label] else OTHER

    def foreseen(self, label: str, values: Collection[str]) -> dict[str, str]:
        """How values without amounts are exported: the first ones by name, as far as there is room.

        None is admitted.
        """
        known = self.values[label]
        room = max(0, self._limits[label] - len(known))
        named = {*[value for value in values if value not in known][:room], *known}
        return {value: value if value in named else OTHER for value in values}

    def limit(self, label: str, value: str) -> str:
        """`value`, or `other` if there is no room for it; each refusal is counted."""
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
        """`limit` for a pod's tier, tenant and gpu_model; usually returns the same tuple."""
        tier, tenant, gpu_model = values
        known = self.values
        if tier in known["tier"] and tenant in known["tenant"] and gpu_model in known["gpu_model"]:
            self._asked_by_pods.add(values)
            return values
        return self.limit("tier", tier), self.limit("tenant", tenant), self.limit("gpu_model", gpu_model)

    def pin(self, label: str, value: str) -> str:
        """Admit a value of the configuration, which is never evicted."""
        self._pinned.add((label, value))
        return self.limit(label, value)

    def has_room(self, label: str) -> bool:
        """Whether one more value would be admitted."""
        return label not in self._full and (
            len(self.values[label]) < self._limits[label] or self._idle(label) is not None
        )

    def advance(self, now_us: int, growth: Growth) -> bool:
        """Advance the time, and record growth now and then; returns whether refused values have room now."""
        self._now_us = max(self._now_us, now_us)
        if now_us < self._next_growth_check_us:
            return False
        self.record_growth(growth)
        self._full.clear()
        relieved = {label for label in self._refused if self.has_room(label)}
        self._refused -= relieved
        return bool(relieved)

    def drain(self) -> dict[Value, KnownValue | None]:
        """Changes since the last call; None for dropped values."""
        fresh, self.fresh = self.fresh, {}
        return fresh

    def record_growth(self, growth: Growth) -> None:
        """Record growth before any value can be evicted, also growth from an earlier process."""
        self._next_growth_check_us = self._now_us + _GROWTH_CHECK_US
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
        """The value that has not grown for longest, if that is long enough for an eviction."""
        by_pods = {pair for labels in self._asked_by_pods for pair in zip(_OF_POD, labels, strict=True)}
        long_ago_us, kept = self._now_us - self._idle_us, self._pinned | self._asked | by_pods
        idle = [
            (grew_us, value)
            for value, grew_us in self.values[label].items()
            if grew_us < long_ago_us and (label, value) not in kept
        ]
        return min(idle)[1] if idle else None

    def _evict(self, label: str) -> None:
        """Evict an idle value; drop the values that were evicted first if there are too many."""
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
