"""`gputally budgets` shows what is spent of each budget, and what is forecast."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.config.read import read_files
from gputally.errors import ConfigError, Problem
from gputally.ledger.open import reading_once
from gputally.model.budgets import GPU_HOURS
from gputally.output.budgets import PLACES, write_budgets
from gputally.process.clock import zone_named
from gputally.process.settings import Setting, add_epilog, add_flags
from gputally.reports.budgets import BudgetRow, budget_row, evaluate


def show_budgets(ledger: str, configuration: str, prices: str, *, output: str, decimals: int | None) -> int:
    """Print the budgets. Raises: LedgerError, and ConfigError if there are none or a file has problems."""
    if not configuration:
        raise ConfigError([Problem("", "--config.file", "is empty; specify the file with the section budgets")])
    rules, book = read_files(Path(configuration), Path(prices) if prices else None)
    if not rules.budgets:
        raise ConfigError([Problem(configuration, "budgets", "is missing; add the section, see docs/budgets.md")])
    places = PLACES[output] if decimals is None else decimals
    with ending_at_once(), reading_once(ledger) as reader, ProgressLine() as progress:
        progress("reading the ledger ...")
        state = reader.state()
        found = evaluate(reader, rules.budgets, currency=book.currency if book else "", zone_of=zone_named)
    rows = [budget_row(each, places=places, zone=zone_named(each.budget.time_zone)) for each in found]
    write_budgets(sys.stdout, rows, state, output=output)
    _warn(rows, output=output)
    sys.stdout.flush()
    return 0


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


_FILES: Final = (
    Setting("config.file", "", "FILE", "the configuration with the budgets (YAML)"),
    Setting("prices.file", "", "FILE", "price book (YAML); its currency is that of the amounts"),
)
_EXAMPLES: Final = f"""\
Works beside a running aggregator: it never blocks it and changes nothing. Each budget of the section `budgets` is shown
in its current period, up to the last time that the ledger is complete. The forecast comes from up to 28 past days, and
needs 3; its interval holds with a probability of 80 %. See docs/budgets.md.

{PLUGIN_HELP}
examples:
  gputally budgets --config.file config.yaml --prices.file prices.yaml --ledger gputally.db
  kubectl gputally budgets --output markdown
"""


def add_budgets_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_budgets)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER, *_FILES))
    add = command.add_argument
    add("--output", choices=("table", "markdown", "csv", "json"), default="table", help="[default: table]")
    add("--decimals", type=int, choices=range(10), metavar="N", help="of amounts, 0 to 9 [default: 2; csv, json: 6]")


def _budgets(parsed: Namespace) -> int:
    values = vars(parsed)
    files = values["config.file"], values["prices.file"]
    return show_budgets(parsed.ledger, *files, output=parsed.output, decimals=parsed.decimals)
