"""What all questions to a ledger have: the period, the cut-off, filters, the time zone, and who asks."""

import re
from collections.abc import Collection, Sequence
from functools import partial
from typing import Annotated, Final, Self

from msgspec import structs

from gputally.formatting.formats import FORMATS
from gputally.questions.parameter import InQuery, Parameter, Question, whole_number
from gputally.reports.choices import FILTERED, Filter, literal
from gputally.reports.named_hours import NamedHours, parse_hours

_COMMA: Final = re.compile(r",(?![^\[]*\])")
"""Separates the values of a filter; a comma in brackets belongs to its value."""
_MOST_ROWS: Final = 10**9 - 1
_SERVED: Final = ("json", *(each for each in FORMATS if each != "json"))
"""The formats of HTTP, the usual one first."""
_MOST_DECIMALS: Final = 9


def globs_of(text: str) -> tuple[str, ...]:
    """The values of a filter, separated by commas."""
    return tuple(_COMMA.split(text))


def filtered_by(columns: Sequence[str]) -> Parameter:
    """Filters of these columns."""
    return Parameter(
        help="only these allocations; a value may have the wildcards * and ?; may be repeated",
        read=partial(_filter, columns=columns),
        metavar="COLUMN=VALUE,...",
        is_repeated=True,
        columns=tuple(columns),
    )


def dimensions(columns: Collection[str], *, default: str = "") -> Parameter:
    """What a row stands for: one or more of the columns."""
    text = f"what a row stands for: {', '.join(columns)}"
    return Parameter(
        help=text,
        read=partial(_dimensions, known=columns),
        metavar="DIMENSION,...",
        default=default,
        query=InQuery(description=f"{text}; several are separated by commas"),
    )


def top_rows(rows: str) -> Parameter:
    """How many rows to show."""
    return Parameter(
        help=f"only the N {rows}; one row adds up the others", read=whole_number(1, _MOST_ROWS), metavar="N"
    )


def formats(*more: str, about: str = "", is_served: bool = False) -> Parameter:
    """The format of the answer: all formats, of a flag also `more`. Only what HTTP answers `is_served`."""
    described = InQuery(name="format", description="of the answer", choices=_SERVED, default=_SERVED[0])
    return Parameter(help=about, choices=(*FORMATS, *more), query=described if is_served else None)


def _filter(text: str, *, columns: Sequence[str]) -> Filter:
    column, equals, values = text.partition("=")
    if column not in columns or not equals:
        raise ValueError(f"'{text}' is not valid; use COLUMN=VALUE with one of {', '.join(columns)}")
    return Filter(column, globs_of(values))


def _dimensions(text: str, *, known: Collection[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"'{unknown[0]}' is not valid; use {', '.join(known)}")
    return names


WINDOW: Final = Parameter(
    help="see below",
    metavar="PERIOD",
    default="month, up to now",
    query=InQuery(description="such as month, last-month, 7d, 2026-10 or 2026-10-01/2026-10-15"),
)
CUT_OFF: Final = Parameter(
    help="what 'now' is: nothing after it counts",
    metavar="TIME",
    default="the last time that the ledger is complete",
)
TIME_ZONE: Final = Parameter(help="of days and months, e.g. Europe/Berlin", metavar="ZONE")
HOURS: Final = Parameter(
    help="what the dimension hours means: [NAME=]DAYS FROM-TO; may be repeated",
    read=parse_hours,
    metavar="HOURS",
    is_repeated=True,
    default="business=Mon-Fri 9-17",
)
DECIMALS: Final = Parameter(
    help="of amounts, 0 to 9", read=whole_number(0, _MOST_DECIMALS), metavar="N", default="2; csv, json: 6", query=None
)


class LedgerQuestion(Question, frozen=True, kw_only=True):
    """What to read of a ledger. Nothing after the `cut_off` counts, by default the end of the ledger.

    `only_tenants` are all that the reader may see, None without a limit: the aggregator alone sets it.
    """

    window: Annotated[str, WINDOW] = "month"
    cut_off: Annotated[str | None, CUT_OFF] = None
    where: Annotated[tuple[Filter, ...], filtered_by(FILTERED)] = ()
    time_zone: Annotated[str, TIME_ZONE] = "UTC"
    hours: Annotated[tuple[NamedHours, ...], HOURS] = ()
    only_tenants: tuple[str, ...] | None = None

    @property
    def periods(self) -> dict[str, str]:
        """The periods that it names, by parameter."""
        return {"window": self.window}

    @property
    def filters(self) -> tuple[Filter, ...]:
        """What the reader asks for, and the limit of what the reader may see."""
        if self.only_tenants is None:
            return self.where
        return (*self.where, Filter("tenant", tuple(sorted(map(literal, self.only_tenants))), is_limit=True))

    def restricted_to(self, tenants: Collection[str]) -> Self:
        """The question of a reader who may see only these tenants. Raises: InvalidQuestion for what is no tenant's."""
        return structs.replace(self, only_tenants=tuple(sorted(tenants)))
