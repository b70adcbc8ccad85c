"""A request for waits: its parameters, as arguments of `gputally waits`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gputally.report.waits.wait_lines import FILTERED as FILTERED_COLUMNS
from gputally.report_api.report_request import (
    DEFAULT_LIMIT,
    FORMATS,
    MAX_LIMIT,
    InvalidRequest,
    ReportRequest,
    expect_known,
    number,
    only,
    restricted_to,
)

WAITS_PATH: Final = "/api/v1/waits"
COMMAND: Final = "waits"
SINGLE: Final = ("by", "window", "cut_off", "top", "time_zone", "hours")
FILTERED: Final = tuple(column for column in FILTERED_COLUMNS if column not in SINGLE)
_PARAMETERS: Final = (*SINGLE, "format", "limit", "offset", *FILTERED)


def wait_request(query: Mapping[str, Sequence[str]], *, tenants: Collection[str] | None) -> ReportRequest:
    """The request with these parameters by a user restricted to `tenants`, None for all.

    A restricted user sees the waits of these tenants, and of others who hold GPUs only the tier. Raises:
    InvalidRequest.
    """
    expect_known(query, _PARAMETERS)
    single = {name: only(name, values) for name, values in query.items() if name not in FILTERED}
    chosen = single.get("format", "json")
    if chosen not in FORMATS:
        raise InvalidRequest(f"unknown format '{chosen}'; use {', '.join(FORMATS)}")
    arguments = (
        f"--output={chosen}",
        *(f"--{name.replace('_', '-')}={single[name]}" for name in SINGLE if name in single),
        *(f"--where={column}={','.join(query[column])}" for column in FILTERED if column in query),
        *restricted_to(tenants),
        *(() if tenants is None else ("--tiers-only",)),
    )
    limit, offset = number(single, "limit", DEFAULT_LIMIT, MAX_LIMIT), number(single, "offset", 0, 10**9)
    return ReportRequest(arguments, chosen, limit, offset)
