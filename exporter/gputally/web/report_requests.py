"""Requests for reports, preemptions and waits: their parameters, as arguments of the commands that answer them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

from gputally.answers.parameters import InvalidRequest, expect_known, number, only
from gputally.model.disruptions import Cause
from gputally.reports.choices import FILTERED as FILTERED_COLUMNS
from gputally.reports.choices import VICTIM_FILTERED, literal
from gputally.reports.choices import WAIT_FILTERED as WAITED_COLUMNS

FORMATS: Final = {
    "json": "application/json",
    "csv": "text/csv",
    "markdown": "text/markdown",
    "html": "text/html",
}
"""Media types by the values of `format`."""
REPORT_SINGLE: Final = ("window", "cut_off", "by", "compare", "unallocated", "top", "time_zone", "hours")
"""Parameters that are flags of `gputally report`."""
_WATERFALL: Final = "waterfall"
REPORT_FILTERED: Final = tuple(column for column in FILTERED_COLUMNS if column not in REPORT_SINGLE)
"""Parameters that are filters; `hours` says what the named hours are."""
REPORT_PARAMETERS: Final = (*REPORT_SINGLE, _WATERFALL, "format", "limit", "offset", *REPORT_FILTERED)
MAX_LIMIT: Final = 10_000
DEFAULT_LIMIT: Final = 1_000
PREEMPTIONS_COMMAND: Final = "preemptions"
PREEMPTION_FORMATS: Final = ("json", "csv", "table")
"""Values of `format`."""
_PREEMPTION_BY: Final = ("pod", "job")
_PREEMPTION_SINGLE: Final = ("by", "window", "cut_off", "time_zone")
_PREEMPTION_PARAMETERS: Final = (*_PREEMPTION_SINGLE, "cause", "format", "limit", "offset", *VICTIM_FILTERED)
WAITS_COMMAND: Final = "waits"
WAIT_SINGLE: Final = ("by", "window", "cut_off", "top", "time_zone", "hours")
WAIT_FILTERED: Final = tuple(column for column in WAITED_COLUMNS if column not in WAIT_SINGLE)
_WAIT_PARAMETERS: Final = (*WAIT_SINGLE, "format", "limit", "offset", *WAIT_FILTERED)


class ReportRequest(NamedTuple):
    """The arguments of the report, its format, and which rows of JSON to send."""

    arguments: tuple[str, ...]
    format: str
    limit: int
    offset: int

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]], *, tenants: Collection[str] | None) -> Self:
        """The request with these parameters by a user restricted to `tenants`, None for all.

        Raises: InvalidRequest.
        """
        expect_known(query, REPORT_PARAMETERS)
        single = {name: only(name, values) for name, values in query.items() if name not in REPORT_FILTERED}
        chosen = single.get("format", "json")
        if chosen not in FORMATS:
            raise InvalidRequest(f"unknown format '{chosen}'; use {', '.join(FORMATS)}")
        if single.get(_WATERFALL, "true") not in ("true", "false"):
            raise InvalidRequest(f"waterfall '{single[_WATERFALL]}' is not valid; use true or false")
        if tenants is not None and "unallocated" in single:
            raise InvalidRequest("unallocated capacity is no tenant's, and your user is restricted to tenants; omit it")
        limits = number(single, "limit", DEFAULT_LIMIT, MAX_LIMIT), number(single, "offset", 0, 10**9)
        return cls((f"--output={chosen}", *_arguments(query, tenants)), chosen, *limits)


def _arguments(query: Mapping[str, Sequence[str]], tenants: Collection[str] | None) -> Iterator[str]:
    """One word each, so that no value is taken for a flag."""
    for name in REPORT_SINGLE:
        if name in query:
            yield f"--{name.replace('_', '-')}={query[name][0]}"
    if query.get(_WATERFALL) == ["true"]:
        yield f"--{_WATERFALL}"
    for column in REPORT_FILTERED:
        if column in query:
            yield f"--where={column}={','.join(query[column])}"
    yield from restricted_to(tenants)


def restricted_to(tenants: Collection[str] | None) -> Iterator[str]:
    """The limit for a user who may see only these tenants; none for one who may see all."""
    if tenants is not None:
        yield f"--only-tenants={','.join(sorted(map(literal, tenants)))}"


def preemption_request(query: Mapping[str, Sequence[str]], *, tenants: Collection[str] | None) -> ReportRequest:
    """The request with these parameters by a user restricted to `tenants`, None for all.

    A restricted user sees preemptors, which may be other tenants' pods, only as their tier. Raises: InvalidRequest.
    """
    expect_known(query, _PREEMPTION_PARAMETERS)
    single = {name: only(name, values) for name, values in query.items() if name not in ("cause", *VICTIM_FILTERED)}
    chosen, causes = single.get("format", "json"), query.get("cause", ())
    if chosen not in PREEMPTION_FORMATS:
        raise InvalidRequest(f"unknown format '{chosen}'; use {', '.join(PREEMPTION_FORMATS)}")
    if single.get("by", "pod") not in _PREEMPTION_BY:
        raise InvalidRequest(f"unknown by '{single['by']}'; use {' or '.join(_PREEMPTION_BY)}")
    if unknown := sorted(set(causes) - set(Cause)):
        raise InvalidRequest(f"unknown cause '{unknown[0]}'; use {', '.join(Cause)}")
    arguments = (
        f"--output={chosen}",
        *(f"--{name.replace('_', '-')}={single[name]}" for name in _PREEMPTION_SINGLE if name in single),
        *(f"--cause={cause}" for cause in causes),
        *(f"--where={column}={','.join(query[column])}" for column in VICTIM_FILTERED if column in query),
        *restricted_to(tenants),
        *(() if tenants is None else ("--tiers-only",)),
    )
    limit, offset = number(single, "limit", DEFAULT_LIMIT, MAX_LIMIT), number(single, "offset", 0, 10**9)
    return ReportRequest(arguments, chosen, limit, offset)


def wait_request(query: Mapping[str, Sequence[str]], *, tenants: Collection[str] | None) -> ReportRequest:
    """The request with these parameters by a user restricted to `tenants`, None for all.

    A restricted user sees the waits of these tenants, and of others who hold GPUs only the tier. Raises:
    InvalidRequest.
    """
    expect_known(query, _WAIT_PARAMETERS)
    single = {name: only(name, values) for name, values in query.items() if name not in WAIT_FILTERED}
    chosen = single.get("format", "json")
    if chosen not in FORMATS:
        raise InvalidRequest(f"unknown format '{chosen}'; use {', '.join(FORMATS)}")
    arguments = (
        f"--output={chosen}",
        *(f"--{name.replace('_', '-')}={single[name]}" for name in WAIT_SINGLE if name in single),
        *(f"--where={column}={','.join(query[column])}" for column in WAIT_FILTERED if column in query),
        *restricted_to(tenants),
        *(() if tenants is None else ("--tiers-only",)),
    )
    limit, offset = number(single, "limit", DEFAULT_LIMIT, MAX_LIMIT), number(single, "offset", 0, 10**9)
    return ReportRequest(arguments, chosen, limit, offset)
