"""Bounded labels: the first values of a label are exported as they are, further ones as `other`."""

from collections.abc import Iterable

from gputally.model.rules import Limits

OTHER = "other"


class Admission:
    """Which label values are exported. Once admitted, a value stays, across restarts too."""

    def __init__(self, limits: Limits, admitted: Iterable[tuple[str, str]] = ()) -> None:
        self._limits = {
            "tier": limits.tiers,
            "tenant": limits.tenants,
            "gpu_model": limits.gpu_models,
            "pool": limits.pools,
        }
        self.values: dict[str, set[str]] = {label: set() for label in self._limits}
        self.fresh: dict[tuple[str, str], None] = {}
        self.refusals: dict[str, int] = dict.fromkeys(self._limits, 0)
        for label, value in admitted:
            self.values[label].add(value)

    def shown(self, label: str, value: str) -> str:
        """How a value is exported, without admitting it."""
        return value if value in self.values[label] else OTHER

    def admit(self, label: str, value: str) -> str:
        """`value` itself, or `other` when the label's limit is reached; each refusal is counted."""
        known = self.values[label]
        if value in known:
            return value
        if len(known) >= self._limits[label]:
            self.refusals[label] += 1
            return OTHER
        known.add(value)
        self.fresh[label, value] = None
        return value
