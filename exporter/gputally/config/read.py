"""Reads the files of the aggregator together, to apply or only to check them, and reports all problems at once."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from gputally.accounting.prices.book import PriceBook
from gputally.config.budgets import unpriced_budgets
from gputally.config.document import load
from gputally.config.fields import Field, kind_of
from gputally.config.prices import PRICE_BOOK, price_book, read_price_book, undefined_tiers
from gputally.config.rules_file import CONFIGURATION, default_rules, read_rules, rules
from gputally.errors import ConfigError, Problem
from gputally.model.rules import Rules

_VERSION: Final = 1
"""The version of the JSON document."""
_READERS: Final[Mapping[str, Callable[[Field], Rules | PriceBook]]] = {PRICE_BOOK: price_book, CONFIGURATION: rules}


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


def check(paths: Iterable[Path]) -> list[Problem]:
    """All problems of all files, each parsed as its declared `kind`; empty if all are valid.

    With exactly one configuration, price books are also checked against its tiers.
    """
    problems: list[Problem] = []
    found: list[tuple[Path, Rules | PriceBook]] = []
    for path in paths:
        try:
            found.append((path, _read(path)))
        except ConfigError as error:
            problems += error.problems
    configurations = [content for _, content in found if isinstance(content, Rules)]
    if len(configurations) == 1:
        books = ((path, content) for path, content in found if isinstance(content, PriceBook))
        problems += (p for path, book in books for p in undefined_tiers(book, configurations[0], file=str(path)))
    return problems


def document_of(problems: Iterable[Problem], *, files: int) -> str:
    """The problems as JSON: `version`, the number of `files`, and `problems` with `file`, `field` and `text`."""
    shown = [{"file": each.file, "field": each.field, "text": each.text} for each in problems]
    document = {"version": _VERSION, "files": files, "problems": shown}
    return msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"


def _read(path: Path) -> Rules | PriceBook:
    root = load(path)
    kind = kind_of(root, _READERS)
    content = _READERS[kind](root) if kind else None
    root.raise_problems()
    assert content is not None, "a wrong kind is a problem"
    return content
