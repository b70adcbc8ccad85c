"""Checking files without using them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from gputally.config.document import load
from gputally.config.fields import Field, kind_of
from gputally.config.price_file import PRICE_BOOK, price_book
from gputally.config.rules_file import CONFIGURATION, rules
from gputally.errors import ConfigError, Problem

_READERS: Final[Mapping[str, Callable[[Field], object]]] = {PRICE_BOOK: price_book, CONFIGURATION: rules}


def check(paths: Iterable[Path]) -> list[Problem]:
    """All problems of all files, each read as the `kind` it declares; empty when every one could be used."""
    return [problem for path in paths for problem in _problems(path)]


def _problems(path: Path) -> tuple[Problem, ...]:
    try:
        root = load(path)
        kind = kind_of(root, _READERS)
        if kind:
            _READERS[kind](root)
        root.raise_problems()
    except ConfigError as error:
        return error.problems
    return ()
