"""Shows what is spent of each budget, and what is forecast."""

import sys
from pathlib import Path

from gputally.commands.from_ledger.reading import LedgerFiles
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.config.read import read_files
from gputally.errors import ConfigError, Problem
from gputally.formatting.formats import places
from gputally.ledger.open import reading_once
from gputally.model.budgets import GPU_HOURS
from gputally.output.budgets import budgets_answer
from gputally.output.writer import write_answer
from gputally.process.clock import zone_named
from gputally.questions.own import BudgetsNow
from gputally.reports.budgets import BudgetRow, budget_row, evaluate


def show_budgets(ledger: str, configuration: str, prices: str, *, output: str, decimals: int | None) -> int:
    """Print the budgets. Raises: LedgerError, and ConfigError if there are none or a file has problems."""
    if not configuration:
        raise ConfigError([Problem("", "--config.file", "is empty; specify the file with the section budgets")])
    rules, book = read_files(Path(configuration), Path(prices) if prices else None)
    if not rules.budgets:
        raise ConfigError([Problem(configuration, "budgets", "is missing; add the section, see docs/budgets.md")])
    with ending_at_once(), reading_once(ledger) as reader, ProgressLine() as progress:
        progress("reading the ledger ...")
        state = reader.state()
        found = evaluate(reader, rules.budgets, currency=book.currency if book else "", zone_of=zone_named)
    rows = [budget_row(each, places=places(output, decimals), zone=zone_named(each.budget.time_zone)) for each in found]
    write_answer(sys.stdout, budgets_answer(rows, state), output=output)
    _warn(rows, output=output)
    sys.stdout.flush()
    return 0


def show_budgets_now(question: BudgetsNow, files: LedgerFiles) -> int:
    """Print the budgets for the aggregator. Raises: as `show_budgets`."""
    return show_budgets(files.ledger, question.configuration, question.prices, output="json", decimals=9)


def _warn(rows: list[BudgetRow], *, output: str) -> None:
    """Report on standard error what the numbers lack. JSON has fields for it."""
    if output == "json":
        return
    for row in rows:
        if not row.matched:
            sys.stderr.write(f"gputally: no allocation matches the budget {row.budget}; check its tenant and tier\n")
        if row.unpriced_gpu_hours and row.unit != GPU_HOURS:
            hours = f"{row.unpriced_gpu_hours:,.2f} GPU-hours without a price"
            sys.stderr.write(f"gputally: the budget {row.budget} does not include {hours}\n")
