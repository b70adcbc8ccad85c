"""The question which pods wait for GPUs, and which workloads lack pods: `gputally why --all`, and `/api/v1/pending`."""

from typing import Annotated, Final

from gputally.model.verdicts import Reason
from gputally.questions.parameter import Parameter, Question, whole_number

PENDING_FILTERS: Final = ("namespace", "tenant", "tier", "job", "reason")
"""Parameters that choose: only pods with one of the given values."""
MOST_PENDING: Final = 1_000
"""In one page."""
_MOST_SKIPPED: Final = 10**9


def _only(what: str) -> Parameter:
    return Parameter(help=f"only this {what}; may be repeated", is_repeated=True)


class Pending(Question, frozen=True, kw_only=True):
    """Which pods to list, and whether with what would help them."""

    namespace: Annotated[tuple[str, ...], _only("namespace")] = ()
    tenant: Annotated[tuple[str, ...], _only("tenant")] = ()
    tier: Annotated[tuple[str, ...], _only("tier")] = ()
    job: Annotated[tuple[str, ...], _only("job")] = ()
    reason: Annotated[
        tuple[Reason, ...],
        Parameter(help="only this reason; may be repeated", read=Reason, choices=tuple(Reason), is_repeated=True),
    ] = ()
    limit: Annotated[
        int, Parameter(help=f"pods of a page, up to {MOST_PENDING}", read=whole_number(0, MOST_PENDING))
    ] = 100
    offset: Annotated[int, Parameter(help="pods to skip", read=whole_number(0, _MOST_SKIPPED))] = 0
    helps: Annotated[bool, Parameter(help="with the first change that would help each pod")] = False

    @property
    def filters(self) -> dict[str, frozenset[str]]:
        """The values that may match, by the name of the filter; nothing for filters without any."""
        return {name: frozenset(values) for name in PENDING_FILTERS if (values := getattr(self, name))}
