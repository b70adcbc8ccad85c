"""PriorityClasses over time: what each said, from when to when, and which tier it stands for."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedPart, StatePart, no_later
from gputally.accounting.terms.tier import tier_of
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.model.advice import PriorityChoice
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import NEVER, PREEMPTS
from gputally.model.kube.policy import ClassVersion, PriorityClass
from gputally.model.rules import Rules
from gputally.model.units import dated_us

SYSTEM: Final = "system-"
"""Names of the classes of Kubernetes itself begin so."""
VersionKey = tuple[str, int]
"""Name and start."""


class ClassTiers(StatePart[Struct]):
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


class ClassVersions(KeyedPart[ClassVersion]):
    """The present version of each existing class, by name. `changes` grows with each change."""

    name = "class-version"
    kinds = (Kind.PRIORITY_CLASSES,)

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0
        self._unwritten: dict[VersionKey, ClassVersion] = {}
        self._ended_us: dict[str, int] = {}
        """When classes were deleted: API times have whole seconds, and another one may have been created since."""

    def value_of(self, name: str) -> int | None:
        """The value of an existing class."""
        return self.known[name].value if name in self.known else None

    def own(self) -> Iterator[ClassVersion]:
        """The existing classes, without those of the system."""
        return (each for each in self.known.values() if not each.name.startswith(SYSTEM))

    def choices(self) -> tuple[PriorityChoice, ...]:
        """What a pod could use, by name."""
        found = (PriorityChoice(each.name, each.value, each.preemption_policy != NEVER) for each in self.own())
        return tuple(sorted(found, key=lambda each: each.name))

    def default(self) -> str:
        """The class of pods that name none, "" if there is none; of several, the one with the smallest value.

        Source: k8s.io/kubernetes plugin/pkg/admission/priority/admission.go, getDefaultPriorityClass.
        """
        defaults = [each for each in self.known.values() if each.is_default]
        return min(defaults, key=lambda each: each.value).name if defaults else ""

    def drain_versions(self) -> dict[VersionKey, ClassVersion]:
        """New and ended versions since the last call."""
        unwritten, self._unwritten = self._unwritten, {}
        return unwritten

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`: a class with another UID is a new one."""
        if not isinstance(found, PriorityClass):
            return
        new, known = _version(found, at_us), self.known.get(found.metadata.name)
        if known and known.uid == new.uid:
            if known.is_default == new.is_default:
                return
            new = replace(new, from_us=max(at_us, known.from_us + 1))
        if known:
            new = replace(new, from_us=max(new.from_us, known.from_us + 1))
            self._write(replace(known, to_us=new.from_us))
        new = replace(new, from_us=max(new.from_us, self._ended_us.pop(new.name, 0)))
        self._store(new.name, new)
        self._write(new)

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`."""
        for name in [name for name, each in self.known.items() if each.uid == uid]:
            if ended := self._remove(name):
                to_us = self._ended_us[name] = max(at_us, ended.from_us + 1)
                self._write(replace(ended, to_us=to_us))

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in {each.uid for each in self.known.values()} - {*uids}:
            self.gone(uid, at_us=at_us)

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        super().touch_all()
        for each in self.known.values():
            self._write(each)

    def restore(self, documents: Iterable[ClassVersion], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        self.known = {each.name: no_later(each, at_us, "from_us") for each in documents}
        self.changes += 1

    def _write(self, version: ClassVersion) -> None:
        self.changes += 1
        self._unwritten[version.name, version.from_us] = version


def _version(found: PriorityClass, at_us: int) -> ClassVersion:
    """The version of a class as observed; its value and policy hold since its creation."""
    created = found.metadata.creation_timestamp
    return ClassVersion(
        name=found.metadata.name,
        uid=found.metadata.uid,
        value=found.value,
        preemption_policy=found.preemption_policy or PREEMPTS,
        is_default=bool(found.global_default),
        from_us=dated_us(created, at_us),
    )
