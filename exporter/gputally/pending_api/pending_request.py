"""Requests about waiting pods: their parameters."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

from gputally.model.verdicts import Reason
from gputally.report_api.report_request import InvalidRequest, expect_known, number, only

PENDING_FILTERS: Final = ("namespace", "tenant", "tier", "job", "reason")
"""Query parameters: only pods with one of the given values."""
PENDING_PARAMETERS: Final = (*PENDING_FILTERS, "limit", "offset", "helps")
WHY_PARAMETERS: Final = ("namespace", "pod", "job")
MOST_PENDING: Final = 1_000
"""In one page."""
USUAL_PENDING: Final = 100


class PendingRequest(NamedTuple):
    """Which waiting pods to list, and whether with what would help them."""

    filters: Mapping[str, frozenset[str]]
    limit: int
    offset: int
    with_helps: bool

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> Self:
        """The request with these parameters; empty ones, which forms send too, are none. Raises: InvalidRequest."""
        expect_known(query, PENDING_PARAMETERS)
        query = {name: given for name, values in query.items() if (given := [each for each in values if each])}
        single = {name: only(name, values) for name, values in query.items() if name not in PENDING_FILTERS}
        filters: dict[str, frozenset[str]] = {each: frozenset(query[each]) for each in PENDING_FILTERS if each in query}
        if unknown := sorted(filters.get("reason", frozenset()) - set(Reason)):
            raise InvalidRequest(f"unknown reason '{unknown[0][:40]}'; use {', '.join(Reason)}")
        if single.get("helps", "true") not in ("true", "false"):
            raise InvalidRequest(f"helps '{single['helps'][:40]}' is not valid; use true or false")
        limit = number(single, "limit", USUAL_PENDING, MOST_PENDING)
        return cls(filters, limit, number(single, "offset", 0, 10**9), single.get("helps") == "true")


class WhyRequest(NamedTuple):
    """One pod, or the pods of one job; without a namespace, the only pod of that name."""

    namespace: str
    pod: str
    job: str

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> Self:
        """The request with these parameters. Raises: InvalidRequest."""
        expect_known(query, WHY_PARAMETERS)
        single = {name: only(name, values) for name, values in query.items()}
        found = cls(*(single.get(name, "") for name in WHY_PARAMETERS))
        if bool(found.pod) == bool(found.job):
            raise InvalidRequest("name one pod or one job: use namespace with pod, or namespace with job")
        if not found.namespace and found.job:
            raise InvalidRequest("namespace is missing; name that of the job")
        return found

    @property
    def subject(self) -> str:
        """As people write it."""
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{place}{self.pod}" if self.pod else f"job {place}{self.job}"
