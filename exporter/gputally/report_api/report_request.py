"""A request for a report: its parameters, as arguments of `gputally report`."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

from gputally.report.report_query import FILTERED as FILTERED_COLUMNS

REPORT_PATH: Final = "/api/v1/report"
FORMATS: Final = {
    "json": "application/json",
    "csv": "text/csv",
    "markdown": "text/markdown",
    "html": "text/html",
}
"""Media types by the values of `format`."""
SINGLE: Final = ("window", "cut_off", "by", "compare", "unallocated", "top", "time_zone", "hours")
"""Parameters that are flags of `gputally report`."""
_WATERFALL: Final = "waterfall"
FILTERED: Final = tuple(column for column in FILTERED_COLUMNS if column not in SINGLE)
"""Parameters that are filters; `hours` says what the named hours are."""
PARAMETERS: Final = (*SINGLE, _WATERFALL, "format", "limit", "offset", *FILTERED)
MAX_LIMIT: Final = 10_000
DEFAULT_LIMIT: Final = 1_000
_SPECIAL: Final = re.compile(r"[]*?\[,]")


class InvalidRequest(ValueError):
    """A request that cannot be served; its text says what to change."""


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
        expect_known(query, PARAMETERS)
        single = {name: only(name, values) for name, values in query.items() if name not in FILTERED}
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
    for name in SINGLE:
        if name in query:
            yield f"--{name.replace('_', '-')}={query[name][0]}"
    if query.get(_WATERFALL) == ["true"]:
        yield f"--{_WATERFALL}"
    for column in FILTERED:
        if column in query:
            yield f"--where={column}={','.join(query[column])}"
    yield from restricted_to(tenants)


def expect_known(query: Mapping[str, Sequence[str]], parameters: Sequence[str]) -> None:
    """Raises: InvalidRequest for a parameter that does not exist, or a value that no command line can have."""
    if unknown := sorted(query.keys() - set(parameters)):
        raise InvalidRequest(f"unknown parameter {', '.join(unknown)}; use {', '.join(parameters)}")
    if any("\0" in value for values in query.values() for value in values):
        raise InvalidRequest("a parameter contains a NUL character; remove it")


def restricted_to(tenants: Collection[str] | None) -> Iterator[str]:
    """The limit for a user who may see only these tenants; none for one who may see all."""
    if tenants is not None:
        yield f"--only-tenants={','.join(sorted(map(literal, tenants)))}"


def literal(text: str) -> str:
    """A pattern of `--where` that matches exactly this text."""
    return _SPECIAL.sub(r"[\g<0>]", text)


def only(name: str, values: Sequence[str]) -> str:
    """The value of a parameter that may be given once. Raises: InvalidRequest."""
    if len(values) > 1:
        raise InvalidRequest(f"{name} is given {len(values)} times; give it once")
    return values[0]


def number(single: Mapping[str, str], name: str, default: int, most: int) -> int:
    """The number of a parameter, up to `most`. Raises: InvalidRequest."""
    text = single.get(name, str(default))
    if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and int(text) <= most:
        return int(text)
    raise InvalidRequest(f"{name} '{text}' is not valid; use a number up to {most}")
