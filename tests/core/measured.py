"""One pod with one GPU of n1, and usage reports of the agent there."""

from typing import Any

from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark
from gputally.model.usage import AssignmentReport
from tests.core.manifests import us
from tests.core.one_pod import NODE, RUNNING
from tests.core.replay import Replay
from tests.core.usage import usage

POD = ("gold", "ml", "A100")
STRANGER = ("unknown", "ml", "A100")
"""The labels of usage without a known pod."""


def started(replay: Replay) -> Replay:
    """The pod runs from 12 on; the pod watch is complete up to 20."""
    replay.see(NODE, RUNNING, at=13)
    complete(replay, at=20)
    return replay


def complete(replay: Replay, *, at: float) -> None:
    """Apply a bookmark: the pod watch is complete up to `at`."""
    replay.apply(Bookmark(kind=Kind.PODS, version="9", at_us=us(at), since_us=us(at)))


def tell(replay: Replay, *assignments: AssignmentReport, at: float, **more: Any) -> None:  # noqa: ANN401 - any field of a report
    """Apply a usage report of the agent."""
    replay.apply(usage(*assignments, at=at, **more))
