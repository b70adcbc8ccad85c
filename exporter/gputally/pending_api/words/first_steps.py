"""What to do first about pods for which no change of the cluster can be checked to help."""

from collections.abc import Mapping
from typing import Final

from gputally.model.verdicts import Reason

FIRST_STEPS: Final[Mapping[str, str]] = {
    Reason.NO_SCHEDULER: "Correct the name, or start the scheduler.",
    Reason.QUEUED: "Look at the quota of the queue.",
    Reason.GATED: "Whoever set them must remove them.",
    Reason.REFUSED: "Read what the API server answered.",
    Reason.CLAIM: "Look at the claim: its devices are not modelled.",
    Reason.UNKNOWN: "Ask again in some seconds.",
    Reason.OTHER: "Read the line Scheduler.",
    Reason.SCHEDULABLE: "If that lasts, look at the scheduler.",
    Reason.VICTIMS_STOPPING: "Wait for their grace period.",
    Reason.PREEMPTING: "If that lasts, look at the scheduler.",
}
"""Of the other reasons, suggestions say what would help."""


def first_step(reason: str, *, has_suggestions: bool) -> str:
    """The first step about a pod or workload that waits for this reason; "" if suggestions say more."""
    return "" if has_suggestions else FIRST_STEPS.get(reason, "")
