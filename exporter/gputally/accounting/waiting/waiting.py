"""Pods that wait for GPUs: the room on the nodes, and the verdict and the cause of each wait."""

from gputally.accounting.waiting.waiting_pod import WaitingPod
from gputally.placement.room import Room


class Waiting:
    """Pending pods with GPUs, by UID, and what the nodes have for them.

    `room` has all nodes with GPUs and all pods on them; a node is complete once all its pods are known. Whoever reads
    it must not keep or change it. Without the feature, `is_on` is False, and there are no verdicts.

    `room.nodes[name].taken` has the UIDs of pods; pods with GPUs among them are in `Fleet.pods.records`.
    """

    def __init__(self) -> None:
        self.is_on = True
        self.room = Room()

    def pod(self, uid: str) -> WaitingPod | None:
        """A pending pod with its verdict as of the last `judge`; None if it does not wait."""
        return None

    def pods(self) -> list[WaitingPod]:
        """All pending pods, the oldest first."""
        return []

    def judge(self, *, at_us: int) -> None:
        """Renew the verdicts that changes since the last call may have changed, and charge the wait until `at_us`."""
