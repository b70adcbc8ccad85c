"""A ledger, and all that can be asked about it while its time stands still."""

import asyncio
import contextlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import aiohttp

from gputally.cli import main
from gputally.showback.showback import showback
from gputally.showback.showback_options import ShowbackOptions
from gputally.top.authorization import Credentials
from tests.fakes.stepped import EXAMPLES

Json = Any
Sample = tuple[Mapping[str, str], Decimal]
"""The labels and the value of a sample."""

PRICES: Final = EXAMPLES / "demo-prices.yaml"
_SAMPLE: Final = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass
class Book:
    """The ledger of an aggregator at `url`, whose clock stands still at `now_us`; accounting began at `start_us`.

    Each surface is asked once for the same question, as it gives the same answer.
    """

    name: str
    ledger: Path
    config: Path
    url: str
    start_us: int
    now_us: int
    scratch: Path
    _answers: dict[tuple[str, ...], Any] = field(default_factory=dict)

    async def command(self, *arguments: str) -> str:
        """What `gputally ARGUMENTS` prints about this ledger."""
        if arguments not in self._answers:
            self._answers[arguments] = _printed(*arguments, f"--ledger={self.ledger}")
        return self._answers[arguments]

    async def document(self, *arguments: str) -> Json:
        """The same as JSON, with exact numbers."""
        return exact(await self.command(*arguments, "--output=json"))

    async def query(self, sql: str) -> list[Json]:
        """The rows that `gputally ledger query` prints, as objects."""
        return [exact(line) for line in (await self.command("ledger", "query", "--output=json", sql)).splitlines()]

    async def get(self, path: str) -> str:
        """What the aggregator answers over HTTP."""
        if (path,) not in self._answers:
            async with aiohttp.ClientSession() as session, session.get(f"{self.url}{path}") as response:
                text = await response.text()
                assert response.status == 200, f"{path}: {response.status} {text}"
                self._answers[path,] = text
        return self._answers[path,]

    async def samples(self, name: str, path: str = "/metrics") -> list[Sample]:
        """The samples of a metric."""
        found = (_SAMPLE.fullmatch(line) for line in (await self.get(path)).splitlines() if line.startswith(name))
        return [
            (dict(_LABEL.findall(each["labels"] or "")), Decimal(each["value"]))
            for each in found
            if each and each["name"] == name
        ]

    async def showback(self, window: str, by: str) -> Mapping[str, str]:
        """The CSV that each tenant gets, by the name of its file."""
        key = "showback", window, by
        if key not in self._answers:
            folder = self.scratch / f"showback-{len(self._answers)}"
            parameters = {"window": window, "by": by, "time_zone": "UTC"}
            options = ShowbackOptions(
                url=self.url,
                credentials=Credentials(),
                parameters=parameters,
                directory=folder,
                formats=("csv",),
                webhook_url_file=None,
            )
            with contextlib.redirect_stdout(io.StringIO()):
                await showback(options)
            self._answers[key] = {path.name: path.read_text() for path in folder.rglob("*.csv")}
        return self._answers[key]


def exact(text: str) -> Json:
    """A JSON document whose numbers are decimals, as written."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _printed(*arguments: str) -> str:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(arguments)
    assert status == 0, f"{' '.join(arguments)}: {errors.getvalue()}"
    return out.getvalue()


def windows(book: Book) -> Sequence[str]:
    return ()


async def settled(seconds: float) -> None:
    await asyncio.sleep(seconds)
