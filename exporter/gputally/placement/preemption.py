"""Whom kube-scheduler would preempt."""

from collections.abc import Collection

from gputally.model.placement.needs import Needs
from gputally.model.placement.verdict import Eviction
from gputally.placement.room import Room


def would_evict(needs: Needs, room: Room, *, protected: Collection[str] = (), uid: str = "") -> Eviction | None:
    """The node and the victims that the default preemption chooses; None if there are none, or if it may not preempt.

    `protected` are the UIDs of pods whose disruption their budgets do not allow. `uid` as in `Situation`.
    """
    raise NotImplementedError
