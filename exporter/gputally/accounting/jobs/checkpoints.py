"""Up to when the work of pods is saved: checkpoints that pods state, or that the configuration assumes for their tier.

Pods state them in annotations and termination messages, both written by the pod's author. Pods that serve users, and
placeholders, have no work that they can lose.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedPart
from gputally.accounting.terms.patterns import matched
from gputally.accounting.terms.tier import serves
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import NO_ANNOTATIONS, Pod, PodAnnotations
from gputally.model.lost_work import CheckpointSource, PodCheckpoint, WorkCheckpoint
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.units import US_PER_DAY, US_PER_SECOND, seconds_of, to_us

LAST_CHECKPOINT: Final = "gputally.io/last-checkpoint"
"""When the job last saved a checkpoint, as RFC 3339."""
CHECKPOINT_INTERVAL: Final = "gputally.io/checkpoint-interval"
"""How often the job saves one, such as `10m` or `1h30m`."""
SAVES_ON_SIGTERM: Final = "gputally.io/saves-on-sigterm"
"""`true` if the job saves one when it is asked to stop."""
SHORTEST_US: Final = 60 * US_PER_SECOND
LONGEST_US: Final = 7 * US_PER_DAY
_AHEAD_US: Final = 60 * US_PER_SECOND
"""The clock of a node may be ahead by this; later times are ignored until they have come."""
_MOST_MESSAGE: Final = 4096
"""The API server limits the termination message of a container to this."""
_LINE: Final = re.compile(r"^gputally-checkpoint=(\S{20,40})\s*$", re.MULTILINE)
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
NOTHING: Final = PodCheckpoint(uid="")


def checkpoint_of(pod: Pod, *, at_us: int, is_placeholder: bool = False) -> PodCheckpoint | None:
    """What `pod` states, observed at `at_us`, the latest time that counts; None if it states nothing valid."""
    annotations = pod.metadata.annotations or NO_ANNOTATIONS
    stated = stated_by(pod, at_us=at_us)
    interval = annotations.checkpoint_interval
    interval_us = interval_of(interval) if interval else None
    saves_on_sigterm = annotations.saves_on_sigterm == "true"
    if not (stated or interval_us or saves_on_sigterm or is_placeholder):  # most pods, at each of their events
        return None
    return PodCheckpoint(
        uid=pod.metadata.uid,
        stated=max(stated, key=lambda each: each.at_us, default=None),
        interval_us=interval_us,
        saves_on_sigterm=saves_on_sigterm,
        is_placeholder=is_placeholder,
    )


def stated_by(pod: Pod, *, at_us: int) -> list[WorkCheckpoint]:
    """The checkpoints that `pod` states in any way, observed at `at_us`, the latest time that counts."""
    return [
        WorkCheckpoint(at_us=min(time_us, at_us), source=source)
        for source, text in _texts(pod, pod.metadata.annotations or NO_ANNOTATIONS)
        if (time_us := time_of(text)) is not None and time_us <= at_us + _AHEAD_US
    ]


def _texts(pod: Pod, annotations: PodAnnotations) -> Iterator[tuple[CheckpointSource, str]]:
    for status in pod.status.container_statuses or ():
        for state in (status.state, status.last_state):
            if state and state.terminated and state.terminated.message:
                for text in _LINE.findall(state.terminated.message[-_MOST_MESSAGE:]):
                    yield CheckpointSource.TERMINATION_MESSAGE, text
    if text := annotations.last_checkpoint:
        yield CheckpointSource.ANNOTATION, text


def time_of(text: str) -> int | None:
    """The time in µs since the epoch; None unless it is RFC 3339 and since the epoch."""
    if not _TIME.fullmatch(text[:41]):
        return None
    try:
        return max(0, to_us(datetime.fromisoformat(text.upper()))) or None
    except (ValueError, OverflowError):
        return None


def interval_of(text: str) -> int | None:
    """The interval in µs; None unless it is a duration from a minute to a week."""
    interval_us = (seconds_of(text) or 0) * US_PER_SECOND
    return interval_us if SHORTEST_US <= interval_us <= LONGEST_US else None


def declared_interval(record: PodRecord, rules: Rules) -> int | None:
    """The interval (µs) of the pod's tier; None without a rule for it."""
    if not rules.checkpoints:  # the usual case
        return None
    tier = record.terms[-1].tier if record.terms else ""
    return next((each.interval_us for each in rules.checkpoints if each.tier in ("", tier)), None)


def last_checkpoint(
    stated: Iterable[WorkCheckpoint], *, start_us: int, end_us: int, interval_us: int | None
) -> WorkCheckpoint:
    """The last checkpoint of work from `start_us` to `end_us`, never before or after it.

    `stated` are those of the pod and of its group. Without any, one is assumed every `interval_us` since the start, if
    that is declared; otherwise nothing is saved since the start.
    """
    latest = max(stated, key=lambda each: each.at_us, default=None)
    if latest:
        return WorkCheckpoint(at_us=min(max(latest.at_us, start_us), end_us), source=latest.source)
    if interval_us is not None:
        return WorkCheckpoint(at_us=end_us - (end_us - start_us) % interval_us, source=CheckpointSource.INTERVAL)
    return WorkCheckpoint(at_us=start_us, source=CheckpointSource.START)


def has_work(record: PodRecord, checkpoint: PodCheckpoint, rules: Rules) -> bool:
    """Whether a pod, which states this `checkpoint`, can lose work; its latest tier decides."""
    if checkpoint.is_placeholder:
        return False
    tier = record.terms[-1].tier if record.terms else ""
    return not (serves(tier, rules) or _keeps_free(tier, record.class_name, rules))


@lru_cache(maxsize=4096)
def _keeps_free(tier: str, class_name: str, rules: Rules) -> bool:
    declared = rules.placeholders
    by_tier = (matched(each, tier) for each in declared.tiers)
    by_class = (matched(each, class_name) for each in declared.classes)
    return any(found is not None for found in (*by_tier, *by_class))


def runs_placeholders(pod: Pod, rules: Rules) -> bool:
    """Whether the images of all containers of a pod are declared to do no work; init containers do not count."""
    images = rules.placeholders.images
    return all(any(matched(image, each.image) is not None for image in images) for each in pod.spec.containers)


class Checkpoints(KeyedPart[PodCheckpoint]):
    """The statements of existing pods, by UID; `pods` are the records of all that request GPUs.

    A pod that states nothing has no entry. The latest checkpoint that a pod ever stated counts.
    """

    name = "checkpoint"
    kinds = (Kind.PODS,)

    def __init__(self, pods: Mapping[str, PodRecord], rules: Rules) -> None:
        super().__init__()
        self.fresh: set[str] = set()
        """UIDs of pods whose statements changed, until `LostWorkPart` has taken them up."""
        self._pods = pods
        self._rules = rules
        self._knows_images = bool(rules.placeholders.images)
        self.known_pods = None if self._knows_images else self.known

    def of(self, uid: str) -> PodCheckpoint:
        """What the pod states."""
        return self.known.get(uid, NOTHING)

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        if not isinstance(found, Pod) or found.metadata.uid not in self._pods:
            return
        uid, is_placeholder = found.metadata.uid, self._knows_images and runs_placeholders(found, self._rules)
        new = checkpoint_of(found, at_us=at_us, is_placeholder=is_placeholder)
        known = self.known.get(uid)
        if new is None and known is None:
            return
        latest = replace(new or PodCheckpoint(uid=uid), stated=_later(known, new))
        if latest != known:
            self._store(uid, latest)
            self.fresh.add(uid)

    def last_seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.last_seen`."""
        self.seen(found, at_us=at_us)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._remove(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.known.keys() - uids:
            self.gone(uid, at_us=at_us)

    def restore(self, documents: Iterable[PodCheckpoint], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            stated = each.stated
            by_now = replace(stated, at_us=min(stated.at_us, at_us)) if stated else None
            self.known[each.uid] = replace(each, stated=by_now)
        self.fresh.update(self.known)


def _later(known: PodCheckpoint | None, new: PodCheckpoint | None) -> WorkCheckpoint | None:
    stated = [each.stated for each in (known, new) if each and each.stated]
    return max(stated, key=lambda each: each.at_us, default=None)
