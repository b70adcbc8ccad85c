"""The question what a period costs by another price book: `gputally rerate`, which reads the price books."""

from typing import Annotated

from gputally.questions.ledger_question import DECIMALS, LedgerQuestion, dimensions, formats, top_rows
from gputally.reports.choices import COLUMNS


class Rerate(LedgerQuestion, frozen=True, kw_only=True, tag="rerate"):
    """Costs and their differences."""

    by: Annotated[tuple[str, ...], dimensions(COLUMNS)] = ("tenant",)
    top: Annotated[int | None, top_rows("rows with the largest difference")] = None
    decimals: Annotated[int | None, DECIMALS] = None
    output: Annotated[str, formats()] = "table"
