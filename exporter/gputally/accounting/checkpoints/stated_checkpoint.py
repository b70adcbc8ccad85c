"""What a pod says about its checkpoints, in annotations and termination messages. Its author writes both."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from gputally.model.kube.pods import NO_ANNOTATIONS, Pod, PodAnnotations
from gputally.model.lost_work import CheckpointSource, PodCheckpoint, WorkCheckpoint
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
