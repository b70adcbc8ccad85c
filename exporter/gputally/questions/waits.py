"""The question how long pods waited for GPUs in a period: `gputally waits`, and `/api/v1/waits`."""

from collections.abc import Collection
from typing import Annotated, Final, Self

from msgspec import structs

from gputally.questions.ledger_question import DECIMALS, LedgerQuestion, dimensions, filtered_by, formats, top_rows
from gputally.questions.parameter import Parameter
from gputally.reports.choices import WAIT_COLUMNS, WAIT_FILTERED, Filter

BY: Final = ("tenant", "cause", "occupying_tier")


class Waits(LedgerQuestion, frozen=True, kw_only=True, tag="waits"):
    """Waits, with their causes and costs. With `tiers_only`, other tenants that hold GPUs are shown only as tiers."""

    where: Annotated[tuple[Filter, ...], filtered_by(WAIT_FILTERED)] = ()
    by: Annotated[tuple[str, ...], dimensions(WAIT_COLUMNS)] = BY
    tiers_only: Annotated[bool, Parameter(help="of other tenants that hold GPUs show only the tier", query=None)] = (
        False
    )
    output: Annotated[str, formats(is_served=True)] = "table"
    top: Annotated[int | None, top_rows("rows with the highest cost")] = None
    decimals: Annotated[int | None, DECIMALS] = None

    def restricted_to(self, tenants: Collection[str]) -> Self:
        """See `LedgerQuestion`: of others who hold GPUs only the tier."""
        return structs.replace(super().restricted_to(tenants), tiers_only=True)
