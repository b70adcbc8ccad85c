"""The progress of jobs that their pods state in annotations, for the cost of an epoch or another unit of work.

Anyone who may patch a pod writes them. Pods of one job report the same counter, so that the progress of a job is the
highest of them. It changes nothing else: it is no part of an allocation and adds no revision.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import Pod, Texts
from gputally.model.pod_record import PodRecord
from gputally.model.units import MICRO

PROGRESS: Final = "gputally.io/progress"
"""How many units of work the job has done."""
PROGRESS_UNIT: Final = "gputally.io/progress-unit"
"""What one of them is, such as `epoch`."""
DEFAULT_UNIT: Final = "unit"
_NUMBER: Final = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,19}")
ProgressKey = tuple[str, str, str, str]
"""Namespace, kind and name of a job, and the UID of its pod."""


class Progress(Struct, frozen=True, gc=False):
    """Work done since the start of the job, in millionths of `unit`."""

    micro: int
    unit: str


def progress_of(annotations: Texts | None) -> Progress | None:
    """The progress that a pod states; None without one, or if it is not a plain decimal of a bounded length."""
    if not annotations or not (text := annotations.get(PROGRESS)) or not (found := _NUMBER.fullmatch(text)):
        return None
    whole, decimals = found.groups("")
    unit = annotations.get(PROGRESS_UNIT) or ""
    return Progress(int(whole) * MICRO + int(decimals.ljust(6, "0")), unit if _WORD.fullmatch(unit) else DEFAULT_UNIT)


class PodProgress(Struct, frozen=True, kw_only=True, gc=False):
    """The highest progress that a pod has stated, in millionths of `unit`, and when it was first observed."""

    uid: str
    micro: int
    unit: str
    at_us: int


class JobProgress(KeyedPart[PodProgress]):
    """The progress of pods that request GPUs and state one; `pods` are the records of all that do request GPUs.

    One entry for each pod, and at most one change of each in a step, however often the annotation changes.
    """

    name = "progress"
    kinds = (Kind.PODS,)

    def __init__(self, pods: Mapping[str, PodRecord]) -> None:
        super().__init__()
        self.known_pods = self.known
        self._pods = pods
        self._unwritten: set[str] = set()
        self._walking: set[str] = set()
        """Pods whose job was preliminary when their progress was written."""
        self._left: dict[ProgressKey, PodProgress] = {}

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; a counter never goes back, as that of a restarted trainer may."""
        if not isinstance(found, Pod) or not (stated := progress_of(found.metadata.annotations)):
            return
        uid = found.metadata.uid
        known = self.known.get(uid)
        if uid in self._pods and (known is None or stated.micro > known.micro):
            self._store(uid, PodProgress(uid=uid, micro=stated.micro, unit=stated.unit, at_us=at_us))
            self._unwritten.add(uid)

    def pod_deleted(self, record: PodRecord) -> None:
        """Keep the last progress of a deleted pod for the next step, as its job is known now."""
        if record.uid in self._unwritten or record.uid in self._walking:
            self._left[_key_of(record)] = self.known[record.uid]

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        if self._remove(uid):
            self._unwritten.discard(uid)
            self._walking.discard(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - uids:
            self.gone(uid, at_us=at_us)

    def drain_reached(self) -> dict[ProgressKey, PodProgress]:
        """New progress since the last call, and once more that of pods whose job was preliminary and is known now."""
        reached, self._left = self._left, {}
        pending, self._walking = self._unwritten | self._walking, set()
        for record in filter(None, map(self._pods.get, pending)):
            if record.walking:
                self._walking.add(record.uid)
            if record.uid in self._unwritten or not record.walking:
                reached[_key_of(record)] = self.known[record.uid]
        self._unwritten.clear()
        return reached

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        super().touch_all()
        self._unwritten.update(self.known)

    def restore(self, documents: Iterable[PodProgress], *, at_us: int) -> None:
        """See `StatePart.restore`. The earlier process may have waited for jobs, so that all is written again."""
        self.known.update((each.uid, no_later(each, at_us, "at_us")) for each in documents)
        self._unwritten.update(self.known)


def _key_of(record: PodRecord) -> ProgressKey:
    return record.namespace, record.job_kind, record.job, record.uid
