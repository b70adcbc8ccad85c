"""The ledgers that all surfaces are asked about."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Final

from tests.surfaces.book import Book
from tests.surfaces.campaign import campaign
from tests.surfaces.scenario_books import scenario

Scene = Callable[[Path], AbstractAsyncContextManager[Book]]
"""Plays a history in an empty folder. Its aggregator answers until the end of the context."""

SCENES: Final[dict[str, Scene]] = {
    "s1": partial(scenario, name="s1", hours=13.2, seed=2),
    "s2": partial(scenario, name="s2", hours=6, seed=3),
    "waits": partial(scenario, name="waits", hours=3, seed=2),
    "campaign": partial(campaign, seed=5),
}
