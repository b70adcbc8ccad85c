"""What would happen to pods, and what would help those that wait."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from gputally.model.verdicts import Eviction, Reason, Verdict


class WhatIf(Struct, frozen=True, kw_only=True, gc=False):
    """What would happen to identical pods that are created now.

    `fitting` of them would be bound now, the first one on any of `nodes`; which of them is decided by scores, which are
    not modelled. `copies` says how many have room on each of them. Each of `evictions` makes room for one more; one
    without victims uses what others left. `verdict` is that of the first pod that has no place then; None if all have.
    """

    fitting: int
    nodes: tuple[str, ...] = ()
    copies: tuple[int, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    verdict: Verdict | None = None


class ChangeKind(StrEnum):
    """What a user, an owner of quotas or an administrator can change."""

    TOLERATE = "tolerate"
    """The pod tolerates the taint `what`."""
    REMOVE_TAINT = "remove_taint"
    UNCORDON = "uncordon"
    DROP_SELECTOR = "drop_selector"
    """The pod no longer requires `what`."""
    REQUEST_LESS = "request_less"
    """The pod requests only `amount` of `what`, the largest that helps."""
    PREEMPT = "preempt"
    """The pod may preempt: another preemptionPolicy."""
    USE_CLASS = "use_class"
    """The pod has the PriorityClass `what`, the lowest that helps."""
    WAIT = "wait"
    """The `pods` on `node` end, which hold `amount` of `what`."""
    RAISE_QUOTA = "raise_quota"
    """The quota `what` is raised by `amount`."""
    REMOVE_GATE = "remove_gate"
    ADD_NODE = "add_node"
    """Another empty node like `node` joins, as an autoscaler or an administrator may add."""


class Actor(StrEnum):
    """Who can make a change."""

    NOBODY = "nobody"
    """Time does it."""
    OWNER = "owner"
    """The owner of the pod or its job."""
    ADMIN = "admin"
    """An administrator of the cluster, its quotas or its PriorityClasses."""
    GATE_OWNER = "gate_owner"
    """Whoever set the scheduling gate."""


ACTORS: Final = {
    ChangeKind.TOLERATE: Actor.OWNER,
    ChangeKind.REMOVE_TAINT: Actor.ADMIN,
    ChangeKind.UNCORDON: Actor.ADMIN,
    ChangeKind.DROP_SELECTOR: Actor.OWNER,
    ChangeKind.REQUEST_LESS: Actor.OWNER,
    ChangeKind.PREEMPT: Actor.ADMIN,  # the policy is that of the class: admission rejects another one
    ChangeKind.USE_CLASS: Actor.OWNER,
    ChangeKind.WAIT: Actor.NOBODY,
    ChangeKind.RAISE_QUOTA: Actor.ADMIN,
    ChangeKind.REMOVE_GATE: Actor.GATE_OWNER,
    ChangeKind.ADD_NODE: Actor.ADMIN,
}
"""Who can make each change."""
CHANGES_JOB: Final = frozenset({ChangeKind.DROP_SELECTOR, ChangeKind.REQUEST_LESS})
"""What the job gets is not what it asked for: less, or on other nodes, perhaps with another GPU model."""


class SuggestedChange(Struct, frozen=True, kw_only=True, gc=False):
    """One change, on `node` or on all."""

    kind: ChangeKind
    what: str = ""
    node: str = ""
    amount: int | None = None
    pods: tuple[str, ...] = ()


class Suggestion(Struct, frozen=True, kw_only=True, gc=False):
    """Changes after which the pod would be bound, as judged by the same model: `reason` says how.

    It is Reason.SCHEDULABLE, or Reason.PREEMPTING with the `eviction` that it needs. Of several pods that are alike, so
    many would be `bound`; one by an eviction.
    """

    changes: tuple[SuggestedChange, ...]
    reason: Reason
    eviction: Eviction | None = None
    bound: int = 1


class PriorityChoice(Struct, frozen=True, gc=False):
    """A PriorityClass that the pod could use."""

    name: str
    value: int
    may_preempt: bool = True
