"""The question for GPU-hours and cost of a period: `gputally report`, `/api/v1/report` and the page `/report`."""

from collections.abc import Collection
from typing import Annotated, Final, Self

from gputally.questions.ledger_question import DECIMALS, LedgerQuestion, dimensions, formats, top_rows
from gputally.questions.parameter import InQuery, InvalidQuestion, Parameter
from gputally.reports.choices import (
    COLUMNS,
    EVEN,
    FOCUS_VERSIONS,
    OF_CAPACITY,
    RECURRING,
    ROWS,
    SHARINGS,
    TIME_DIMENSIONS,
    WEIGHTED,
)

PRESETS: Final = ("team",)
FOCUS: Final = "focus"
PREVIOUS: Final = "previous"
"""The period before, to compare with."""
_SHARING: Final = (
    "add the cost of capacity that nobody held: as rows of its own, or shared among the others, the same for all "
    "(even) or in proportion to their cost (weighted)"
)


class Report(LedgerQuestion, frozen=True, kw_only=True, tag="report"):
    """GPU-hours and cost. The answer of a `page` has all tables that are asked for, and the days, of one moment."""

    by: Annotated[tuple[str, ...] | None, dimensions(COLUMNS, default="tenant")] = None
    compare: Annotated[
        str | None,
        Parameter(help="explain the change since this period; 'previous' is the one before", metavar="PERIOD"),
    ] = None
    unallocated: Annotated[
        str | None,
        Parameter(
            help=_SHARING,
            choices=SHARINGS,
            bare=ROWS,
            query=InQuery(description=f"{_SHARING}; not for users restricted to tenants"),
        ),
    ] = None
    waterfall: Annotated[
        bool,
        Parameter(
            help="from capacity to what was used in jobs that succeeded, with the cause of each loss, at capacity "
            "prices"
        ),
    ] = False
    preset: Annotated[
        str | None,
        Parameter(
            help="a ready report. team: GPU-hours, cost, utilisation and number of jobs of each tenant, with its five "
            "most expensive jobs",
            choices=PRESETS,
            query=None,
        ),
    ] = None
    output: Annotated[
        str,
        formats(
            FOCUS,
            about="focus: charges by hour and pod for FinOps tools, whatever --by says",
            is_served=True,
        ),
    ] = "table"
    top: Annotated[int | None, top_rows("rows with the highest cost, or the largest change")] = None
    decimals: Annotated[int | None, DECIMALS] = None
    focus_version: Annotated[str, Parameter(help="of the FOCUS columns", choices=FOCUS_VERSIONS, query=None)] = (
        FOCUS_VERSIONS[0]
    )
    page: bool = False

    @property
    def periods(self) -> dict[str, str]:
        """See `LedgerQuestion`; the period before is none of its own."""
        return super().periods | ({} if self.compare in (None, PREVIOUS) else {"compare": self.compare})

    def restricted_to(self, tenants: Collection[str]) -> Self:
        """See `LedgerQuestion`. Raises: InvalidQuestion for capacity that nobody held."""
        if self.unallocated is not None:
            problem = "such capacity is no tenant's, and your user is restricted to tenants; omit it"
            raise InvalidQuestion("unallocated", problem)
        return super().restricted_to(tenants)

    def check(self) -> None:
        """Raises: InvalidQuestion for values that exclude each other; on a page, each has its own table."""
        if not self.page:
            self._check_one_subject()
            self._check_sharing()
            self._check_waterfall()
        columns = [*(self.by or ()), *(each.column for each in self.where)]
        single = [each for each in columns if each in TIME_DIMENSIONS and each not in RECURRING]
        if self.compare is not None and single:
            problem = f"by {single[0]}, two periods have no rows in common; use {', '.join(RECURRING)}, or no time"
            raise InvalidQuestion("compare", problem)

    def _check_one_subject(self) -> None:
        given = {
            "waterfall": self.waterfall,
            "preset": self.preset,
            "by": self.preset and self.by is not None,
            "unallocated": self.unallocated,
            "compare": self.compare is not None,
            f"output {FOCUS}": self.output == FOCUS,
        }
        chosen = [name for name, is_given in given.items() if is_given]
        if len(chosen) > 1:
            raise InvalidQuestion(chosen[0], "cannot be combined with {}; omit one of them", chosen[1])

    def _check_sharing(self) -> None:
        others = [each.column for each in self.where if each.column not in OF_CAPACITY]
        if self.unallocated in (EVEN, WEIGHTED) and others:
            problem = f"{self.unallocated} cannot be combined with {{}}: it shares among all; omit one"
            raise InvalidQuestion("unallocated", problem, f"where {others[0]}")

    def _check_waterfall(self) -> None:
        times = [each for each in self.by or () if each in TIME_DIMENSIONS]
        if self.waterfall and times:
            problem = f"cannot be divided by {times[0]}; choose the period with {{}}, or hours with {{}}"
            raise InvalidQuestion("waterfall", problem, "window", "where")
