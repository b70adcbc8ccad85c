"""One pod with one GPU of n1, whose agent tells what it did."""

from typing import Any

from gputally.model.kube import Kind
from gputally.model.measured.usage_report import AssignmentReport
from gputally.model.observation import Bookmark
from tests.core.manifests import us
from tests.core.one_pod import NODE, RUNNING
from tests.core.replay import Replay
from tests.core.usage import usage

POD = ("gold", "ml", "A100")
STRANGER = ("unknown", "ml", "A100")
"""What no pod did that is known."""


def started(replay: Replay) -> Replay:
    """The pod runs since 12, and is known at 20."""
    replay.see(NODE, RUNNING, at=13)
    complete(replay, at=20)
    return replay


def complete(replay: Replay, *, at: float) -> None:
    """The watch of pods has told all that happened before."""
    replay.apply(Bookmark(kind=Kind.PODS, version="9", at_us=us(at), since_us=us(at)))


def tell(replay: Replay, *assignments: AssignmentReport, at: float, **more: Any) -> None:  # noqa: ANN401 - any field of a report
    """The agent answers."""
    replay.apply(usage(*assignments, at=at, **more))
