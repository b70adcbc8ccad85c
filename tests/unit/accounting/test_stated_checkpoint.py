"""What a pod may state about its checkpoints."""

from collections.abc import Mapping

import pytest

from gputally.accounting.jobs.checkpoints import (
    CHECKPOINT_INTERVAL,
    LAST_CHECKPOINT,
    SAVES_ON_SIGTERM,
    checkpoint_of,
    interval_of,
    time_of,
)
from gputally.model.lost_work import CheckpointSource, PodCheckpoint, WorkCheckpoint
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import PodForm, as_pod, instant, us


def stated(at: float, *, message: str = "", annotations: Mapping[str, str] | None = None) -> PodCheckpoint | None:
    form = PodForm(node="n1", scheduled=1, started=2, finished=90, phase="Failed", termination_message=message)
    pod = form.manifest()
    pod["metadata"]["annotations"] = dict(annotations or {})
    return checkpoint_of(as_pod(pod), at_us=us(at))


def time_in(found: PodCheckpoint | None) -> WorkCheckpoint | None:
    return found.stated if found else None


def test_the_last_line_of_a_termination_message_counts_among_other_lines() -> None:
    message = (
        f"saving\ngputally-checkpoint={instant(50)}\ngputally-checkpoint={instant(80)}\r\ngputally-checkpoint=soon\n"
    )

    assert time_in(stated(95, message=message)) == WorkCheckpoint(
        at_us=us(80), source=CheckpointSource.TERMINATION_MESSAGE
    )


def test_an_annotation_states_a_checkpoint_and_the_later_of_both_counts() -> None:
    annotations = {LAST_CHECKPOINT: instant(70)}
    expected = WorkCheckpoint(at_us=us(70), source=CheckpointSource.ANNOTATION)

    assert time_in(stated(95, annotations=annotations)) == expected
    assert time_in(stated(95, annotations=annotations, message=f"gputally-checkpoint={instant(60)}")) == expected


def test_a_time_of_a_clock_that_is_ahead_counts_as_the_observation_and_a_later_one_not_at_all() -> None:
    assert time_in(stated(70, annotations={LAST_CHECKPOINT: instant(75)})) == WorkCheckpoint(
        at_us=us(70), source=CheckpointSource.ANNOTATION
    )
    assert stated(70, annotations={LAST_CHECKPOINT: instant(131)}) is None


def test_interval_and_saving_on_sigterm_are_declared_by_annotations() -> None:
    found = stated(95, annotations={CHECKPOINT_INTERVAL: "10m", SAVES_ON_SIGTERM: "true"})

    assert found == PodCheckpoint(uid="uid-a", interval_us=600 * US_PER_SECOND, saves_on_sigterm=True)


@pytest.mark.parametrize("text", ["", "now", "2026-07-01", "2026-07-01T00:00:00", "2026-13-01T00:00:00Z", "9" * 5000])
def test_what_is_not_rfc_3339_states_nothing(text: str) -> None:
    assert time_of(text) is None
    assert stated(95, annotations={LAST_CHECKPOINT: text, SAVES_ON_SIGTERM: "yes", CHECKPOINT_INTERVAL: text}) is None
    assert stated(95, message=f"gputally-checkpoint={text}") is None


@pytest.mark.parametrize(
    "text",
    ["2026-07-01T00:01:10Z", "2026-07-01t00:01:10z", "2026-07-01T02:01:10+02:00", "2026-07-01T00:01:10.000000999Z"],
)
def test_any_form_of_rfc_3339_is_read(text: str) -> None:
    assert time_of(text) == us(70)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("1h", 3600), ("1h30m", 5400), ("90s", 90), ("168h", 604_800)]
    + [(text, None) for text in ("", "59s", "169h", "10", "m", "-10m", "10m1h", "1e3s", "9" * 5000 + "h")],
)
def test_an_interval_is_a_duration_from_a_minute_to_a_week(text: str, seconds: int | None) -> None:
    assert interval_of(text) == (None if seconds is None else seconds * US_PER_SECOND)
