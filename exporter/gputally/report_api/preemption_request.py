"""A request for preemptions: its parameters, as arguments of `gputally preemptions`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gputally.model.disruptions import Cause
from gputally.report.disruption_lines import FILTERED
from gputally.report_api.report_request import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    InvalidRequest,
    ReportRequest,
    expect_known,
    number,
    only,
    restricted_to,
)

PREEMPTIONS_PATH: Final = "/api/v1/preemptions"
COMMAND: Final = "preemptions"
FORMATS: Final = ("json", "csv", "table")
"""Values of `format`."""
_BY: Final = ("pod", "job")
_SINGLE: Final = ("by", "window", "cut_off", "time_zone")
_PARAMETERS: Final = (*_SINGLE, "cause", "format", "limit", "offset", *FILTERED)


def preemption_request(query: Mapping[str, Sequence[str]], *, tenants: Collection[str] | None) -> ReportRequest:
    """The request with these parameters by a user restricted to `tenants`, None for all.

    A restricted user sees preemptors, which may be other tenants' pods, only as their tier. Raises: InvalidRequest.
    """
    expect_known(query, _PARAMETERS)
    single = {name: only(name, values) for name, values in query.items() if name not in ("cause", *FILTERED)}
    chosen, causes = single.get("format", "json"), query.get("cause", ())
    if chosen not in FORMATS:
        raise InvalidRequest(f"unknown format '{chosen}'; use {', '.join(FORMATS)}")
    if single.get("by", "pod") not in _BY:
        raise InvalidRequest(f"unknown by '{single['by']}'; use {' or '.join(_BY)}")
    if unknown := sorted(set(causes) - set(Cause)):
        raise InvalidRequest(f"unknown cause '{unknown[0]}'; use {', '.join(Cause)}")
    arguments = (
        f"--output={chosen}",
        *(f"--{name.replace('_', '-')}={single[name]}" for name in _SINGLE if name in single),
        *(f"--cause={cause}" for cause in causes),
        *(f"--where={column}={','.join(query[column])}" for column in FILTERED if column in query),
        *restricted_to(tenants),
        *(() if tenants is None else ("--tiers-only",)),
    )
    limit, offset = number(single, "limit", DEFAULT_LIMIT, MAX_LIMIT), number(single, "offset", 0, 10**9)
    return ReportRequest(arguments, chosen, limit, offset)
