"""Reads the files of the aggregator together, to report the problems of all of them at once."""

from pathlib import Path

from gputally.accounting.prices.book import PriceBook
from gputally.config.budgets import unpriced_budgets
from gputally.config.prices import read_price_book, undefined_tiers
from gputally.config.rules_file import default_rules, read_rules
from gputally.errors import ConfigError, Problem
from gputally.model.rules import Rules


def read_files(
    configuration: Path | None, prices: Path | None, *, with_budgets: bool = True
) -> tuple[Rules, PriceBook | None]:
    """Rules (the defaults without a file) and price book (None without one), which budgets may need.

    Raises: ConfigError with the problems of both files.
    """
    problems: list[Problem] = []
    rules, book = default_rules(), None
    try:
        rules = read_rules(configuration) if configuration else rules
    except ConfigError as error:
        problems += error.problems
    try:
        book = read_price_book(prices) if prices else None
    except ConfigError as error:
        problems += error.problems
    if with_budgets and not prices:
        problems += unpriced_budgets(rules.budgets, file=str(configuration))
    if prices and book and not problems:
        problems += undefined_tiers(book, rules, file=str(prices))
    if problems:
        raise ConfigError(problems)
    return rules, book
