"""The tiers of PriorityClasses, which are exported as 0 before any pod has them."""

from typing import Final

from gputally.accounting.base.state_part import StatePart
from gputally.accounting.terms.tier import tier_of
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.model.kube.meta import Kind, Object
from gputally.model.kube.policy import PriorityClass
from gputally.model.rules import Rules

SYSTEM: Final = "system-"
"""Names of the classes of Kubernetes itself begin so."""


class ClassTiers(StatePart[PriorityClass]):
    """Tiers stay known after their class is deleted. Those of system classes wait until pods have them."""

    name = "class-tier"
    kinds = (Kind.PRIORITY_CLASSES,)

    def __init__(self, rules: Rules, limiter: LabelLimiter) -> None:
        self._rules = rules
        self._limiter = limiter

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        name = found.metadata.name
        if isinstance(found, PriorityClass) and not name.startswith(SYSTEM):
            self._limiter.pin("tier", tier_of(name, found.value, self._rules))
