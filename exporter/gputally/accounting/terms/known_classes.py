"""The PriorityClasses of the cluster, which pods could use."""

from collections.abc import Collection

from gputally.accounting.state_part import StatePart
from gputally.model.kube import Kind, Object, PriorityClass
from gputally.model.placement.advice import PriorityChoice

_NEVER = "Never"


class KnownClasses(StatePart[PriorityClass]):
    """The classes that exist, by UID. They are listed again after a restart, so nothing is kept."""

    name = "known-class"
    kinds = (Kind.PRIORITY_CLASSES,)

    def __init__(self) -> None:
        self._known: dict[str, PriorityClass] = {}

    def choices(self) -> tuple[PriorityChoice, ...]:
        """What a pod could use, by name; the classes of the system are not for others."""
        users = (each for each in self._known.values() if not each.metadata.name.startswith("system-"))
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

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._known.pop(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.listed`."""
        self._known = {uid: each for uid, each in self._known.items() if uid in uids}
