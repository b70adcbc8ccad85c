"""The question what is behind a number of a report: `gputally explain`."""

from typing import Annotated

from gputally.questions.ledger_question import DECIMALS, LedgerQuestion, formats, top_rows


class Explain(LedgerQuestion, frozen=True, kw_only=True, tag="explain"):
    """The allocations, prices and dates of the rows that filters choose."""

    top: Annotated[int | None, top_rows("pods with the highest cost, the highest first")] = None
    decimals: Annotated[int | None, DECIMALS] = None
    output: Annotated[str, formats()] = "table"
