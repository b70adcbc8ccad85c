"""What is spent of each budget, in its currency or in GPU-hours, by the name of the budget."""

from decimal import Decimal
from typing import Final

from gputally.config.read import read_files
from tests.fakes.stepped import EXAMPLES
from tests.surfaces.answer import Answer, Key, Reader, answer
from tests.surfaces.book import Book, exact
from tests.surfaces.readers import HOUR_S, NINE, SIX

PRICES: Final = EXAMPLES / "demo-prices.yaml"
NOTHING: Final = Answer({}, Decimal())


def budget_command() -> Reader:
    """`gputally budgets`."""

    async def read(book: Book) -> Answer:
        if not _limits(book):
            return NOTHING
        files = (f"--config.file={book.config}", f"--prices.file={PRICES}")
        rows = exact(book.command("budgets", *files, "--decimals=9", "--output=json"))["budgets"]
        return answer((((row["budget"],), row["spent"]) for row in rows), exact_to=NINE)

    return read


def budget_report() -> Reader:
    """`gputally report` of the same tenants, tiers and period."""

    async def read(book: Book) -> Answer:
        return answer([_reported(book, key, *limit) for key, limit in _limits(book).items()], exact_to=NINE)

    return read


def _reported(book: Book, key: Key, column: str, flags: tuple[str, ...]) -> tuple[Key, Decimal]:
    rows = exact(book.command("report", *flags, "--decimals=9", "--output=json"))["totals"]
    return key, sum((row[column] for row in rows), Decimal())


def _limits(book: Book) -> dict[Key, tuple[str, tuple[str, ...]]]:
    """By budget, the column of a report that it limits, and the flags of that report."""
    rules, _ = read_files(book.config, PRICES)
    return {
        (each.name,): (
            "gpu_hours" if each.amount is None else "cost",
            (f"--window={each.period}", f"--where=tenant={each.tenant}", f"--where=tier={each.tier}"),
        )
        for each in rules.budgets
    }


def budget_metric() -> Reader:
    """The metrics of what is spent."""

    async def read(book: Book) -> Answer:
        costs = await book.samples("gputally_budget_spent_cost")
        times = await book.samples("gputally_budget_spent_gpu_seconds")
        found = [*costs, *((labels, value / HOUR_S) for labels, value in times)]
        return answer((((labels["budget"],), value) for labels, value in found), exact_to=SIX)

    return read
