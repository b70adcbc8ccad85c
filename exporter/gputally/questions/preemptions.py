"""The question which pods lost their GPUs involuntarily: `gputally preemptions`, and `/api/v1/preemptions`."""

from collections.abc import Collection
from typing import Annotated, Final, Self

from msgspec import structs

from gputally.model.disruptions import Cause
from gputally.questions.ledger_question import LedgerQuestion, filtered_by, formats
from gputally.questions.parameter import InQuery, InvalidQuestion, Parameter
from gputally.reports.choices import VICTIM_FILTERED, Filter

BY_POD: Final = "pod"
BY_JOB: Final = "job"
_USUAL: Final = frozenset(cause for cause in Cause if cause not in (Cause.DELETION, Cause.CONTAINER_RESTART))
"""The causes that are listed by default, without the two of which a cluster may have many: who deletes a pod wants its
end, and a pod that restarts keeps its GPUs."""


class Preemptions(LedgerQuestion, frozen=True, kw_only=True, tag="preemptions"):
    """Pods, or jobs, that lost GPUs. With `tiers_only`, preemptors are shown only as tiers."""

    where: Annotated[tuple[Filter, ...], filtered_by(VICTIM_FILTERED)] = ()
    by: Annotated[
        str,
        Parameter(
            help="what a row stands for",
            choices=(BY_POD, BY_JOB),
            query=InQuery(
                description="pod, or job: one record for each preemption of a job, with its rule, its cost and advice"
            ),
        ),
    ] = BY_POD
    cause: Annotated[
        tuple[Cause, ...],
        Parameter(
            help="only this cause; may be repeated",
            read=Cause,
            metavar="CAUSE",
            choices=tuple(Cause),
            is_repeated=True,
            default="all but deletion and container_restart",
        ),
    ] = ()
    tiers_only: Annotated[
        bool, Parameter(help="of preemptors show only the tier, no namespace and name", query=None)
    ] = False
    output: Annotated[str, formats(is_served=True)] = "table"

    @property
    def causes(self) -> frozenset[Cause]:
        """The causes to list: those that are asked for, otherwise the usual ones."""
        usual = _USUAL if self.by == BY_POD else frozenset({Cause.PREEMPTION})
        return frozenset(self.cause) or usual

    def restricted_to(self, tenants: Collection[str]) -> Self:
        """See `LedgerQuestion`: of preemptors, which may be other tenants' pods, only the tier."""
        return structs.replace(super().restricted_to(tenants), tiers_only=True)

    def check(self) -> None:
        """Raises: InvalidQuestion for causes of which there are no records of jobs."""
        if self.by == BY_JOB and self.causes != {Cause.PREEMPTION}:
            raise InvalidQuestion("cause", "{} job lists only preemptions; use preemption, or omit it", "by")
