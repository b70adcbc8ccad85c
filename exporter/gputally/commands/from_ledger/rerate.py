"""Compares what a period costs by another price book."""

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from gputally.accounting.prices.book import PriceBook
from gputally.commands.from_ledger.reading import LedgerFiles, matched, reading_scope
from gputally.commands.progress import ProgressLine, ending_at_once
from gputally.config.document import STDIN
from gputally.config.prices import read_price_book
from gputally.errors import ConfigError, Problem
from gputally.formatting.formats import places
from gputally.model.price import Purchase
from gputally.output.rerating import RerateReport, comparison_answer, hours
from gputally.output.writer import write_answer
from gputally.questions.rerate import Rerate
from gputally.reports.price_comparison import PriceComparison, compare_prices
from gputally.reports.rerating import Books, read_rated


class RerateOptions(Struct, frozen=True, kw_only=True):
    """The price books, and how spot nodes count."""

    prices: Path
    against: Path | None
    purchase: Purchase | None


def rerate(question: Rerate, files: LedgerFiles, options: RerateOptions) -> int:
    """Print the comparison.

    Raises: LedgerError, and ConfigError for wrong price books, before the ledger is read, and for wrong periods and
    time zones.
    """
    books = _books(options)
    with (
        ending_at_once(),
        ProgressLine() as progress,
        reading_scope(question, files, by=question.by) as (reader, scope),
    ):
        progress("reading the ledger ...")
        comparison = compare_prices(read_rated(reader, scope.query, books), currency=books.after.currency)
        report = RerateReport(
            scope=scope,
            books=books,
            comparison=comparison,
            top=question.top,
            places=places(question.output, question.decimals),
        )
        progress("")
        write_answer(sys.stdout, comparison_answer(report), output=question.output)
        sys.stdout.flush()
        empty = matched(reader, scope, is_empty=not comparison.lines)
        for note in (*empty.warnings, *_notes(comparison)):
            sys.stderr.write(f"gputally: {note}\n")
    return 0


def _books(options: RerateOptions) -> Books:
    """The price books. Raises: ConfigError with the problems of both."""
    if options.prices == options.against == STDIN:
        raise ConfigError([Problem("", "--against", "standard input is one price book; name a file")])
    problems, books = list[Problem](), list[PriceBook]()
    for path in (options.prices, options.against):
        try:
            books += [read_price_book(path)] if path else []
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return Books(books[1] if options.against else None, books[0], options.purchase)


def _notes(comparison: PriceComparison) -> Iterator[str]:
    """What the reader must know about the comparison."""
    if comparison.guessed:
        yield (
            f"{hours(comparison.guessed)} GPU-hours are on nodes that were never observed, such as those of imported "
            "jobs; they are rated by GPU model, pool and purchase option alone"
        )
    if comparison.changed_days:
        yield (
            f"{hours(comparison.changed_days)} GPU-hours are of days of which the retention left only the sum, and in "
            "which a price or a node changed; they are rated by the start of the day"
        )
    for key, gpu_time in comparison.unknown_keys.items():
        yield (
            f"the price of {hours(gpu_time)} GPU-hours depends on the node label {key}, which the ledger may not have "
            "stored: it stores those that the price book of the aggregator names; they are rated as without the label"
        )
