"""The PriorityClasses that pods can use, and their tiers, which are exported as 0 before any pod has them."""

from collections.abc import Collection

from gputally.accounting.state_part import StatePart
from gputally.accounting.terms.tier import tier_of
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.model.kube import Kind, Object, PriorityClass
from gputally.model.placement.advice import PriorityChoice
from gputally.model.rules import Rules

_NEVER = "Never"


class ClassTiers(StatePart[PriorityClass]):
    """Classes are listed again after a restart. Tiers stay known after their class is deleted.

    Those of system classes wait until pods have them.
    """

    name = "class-tier"
    kinds = (Kind.PRIORITY_CLASSES,)

    def __init__(self, rules: Rules, limiter: LabelLimiter) -> None:
        self._rules = rules
        self._limiter = limiter
        self._known: dict[str, PriorityClass] = {}

    def choices(self) -> tuple[PriorityChoice, ...]:
        """What a pod could use, by name; the classes of the system are not for others."""
        users = (each for each in self._known.values() if not _is_of_system(each))
        found = (PriorityChoice(each.metadata.name, each.value, each.preemption_policy != _NEVER) for each in users)
        return tuple(sorted(found, key=lambda each: each.name))

    def default(self) -> str:
        """The class of pods that name none, "" if there is none; of several, the one with the smallest value.

        Source: k8s.io/kubernetes plugin/pkg/admission/priority/admission.go, getDefaultPriorityClass.
        """
        defaults = [each for each in self._known.values() if each.global_default]
        return min(defaults, key=lambda each: each.value).metadata.name if defaults else ""

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if isinstance(found, PriorityClass):
            self._known[found.metadata.uid] = found
            if not _is_of_system(found):
                self._limiter.pin("tier", tier_of(found.metadata.name, found.value, self._rules))

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._known.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.listed`."""
        self._known = {uid: each for uid, each in self._known.items() if uid in uids}


def _is_of_system(found: PriorityClass) -> bool:
    return found.metadata.name.startswith("system-")
