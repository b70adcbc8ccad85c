"""A pod that lost its work to a disruption, or may yet prove to have."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gputally.accounting.lost_work.losses import Amounts, checkpoint_before_end, loss_amounts
from gputally.accounting.lost_work.pod_work import PodWork
from gputally.accounting.totals.total import Total
from gputally.model.disruptions import PREEMPTIONS, Cause
from gputally.model.lost_work import WorkCheckpoint


class PodLoss(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One ended pod, observed to have ended at `noticed_us`.

    `charged_to` is the victim of the disruption that cost its work, itself for a victim, empty if it lost none; `cause`
    is why that one was disrupted.
    `shared` are the checkpoints of its group before its end. For a victim, `stalled` is the GPU-time of the members
    that waited for its replacement until `stalled_until_us`, by exported tier and tenant, and `is_final` says that what
    became of its group is known. `counted` is what the counters have of it.
    """

    work: PodWork
    is_victim: bool
    noticed_us: int
    charged_to: str = ""
    cause: Cause = Cause.PREEMPTION
    shared: tuple[WorkCheckpoint, ...] = ()
    stalled: tuple[tuple[str, str, int], ...] = ()
    stalled_until_us: int = 0
    is_final: bool = False
    counted: tuple[tuple[Total, tuple[str, ...], int], ...] = ()

    @property
    def checkpoint(self) -> WorkCheckpoint:
        """The last checkpoint before the end."""
        return checkpoint_before_end(self.work, self.shared)


def amounts_of(loss: PodLoss, *, from_us: int, what_ifs_us: Iterable[int]) -> Amounts:
    """What the counters should have of it; they exclude everything before `from_us`.

    `what_ifs_us` are the checkpoint intervals for which the loss is computed, too.
    """
    found: Amounts = {}
    if loss.charged_to:
        found = loss_amounts(loss.work, loss.checkpoint, cause=loss.cause, from_us=from_us, what_ifs_us=what_ifs_us)
    if loss.cause in PREEMPTIONS:
        found |= {(Total.STALLED, (tier, tenant)): amount for tier, tenant, amount in loss.stalled}
    return found


def with_counted(loss: PodLoss, amounts: Amounts) -> PodLoss:
    """`loss` as counted."""
    return replace(loss, counted=tuple((total, labels, amount) for (total, labels), amount in amounts.items()))


def with_shared(loss: PodLoss, stated: Sequence[WorkCheckpoint]) -> PodLoss:
    """`loss` with the latest checkpoint before its end, among the one known before and those `stated`, in order."""
    before = bisect_right(stated, loss.work.end_us, key=lambda each: each.at_us)
    found = (*stated[max(0, before - 1) : before], *loss.shared)
    return replace(loss, shared=tuple(sorted(found, key=lambda each: each.at_us)[-1:]))


def loses_work(work: PodWork, cause: Cause) -> bool:
    """Whether a victim lost its work: one that ended by itself did not, but a kubelet's victims look as if they had."""
    return not (work.succeeded or (cause is Cause.PREEMPTION and work.ended_itself))
