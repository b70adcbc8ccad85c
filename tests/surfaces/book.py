"""A ledger, and all that can be asked about it while its time stands still."""

import contextlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import aiohttp

from gputally.cli import main
from gputally.client.access import Credentials
from gputally.commands.from_aggregator.showback import ShowbackOptions, showback
from tests.fakes.command import start

Json = Any
Sample = tuple[Mapping[str, str], Decimal]
"""The labels and the value of a sample."""

_SAMPLE: Final = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL: Final = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(kw_only=True)
class Book:
    """The ledger of an aggregator at `url`, whose clock stands still at `now_us`; accounting began at `start_us`.

    Each answer is kept, since time stands still: questions that read the same document share it.
    """

    ledger: Path
    config: Path
    kubeconfig: Path
    url: str
    start_us: int
    now_us: int
    scratch: Path
    texts: dict[tuple[str, ...], str] = field(default_factory=dict)
    _bills: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def command(self, *arguments: str) -> str:
        """What `gputally ARGUMENTS` prints about this ledger."""
        if arguments not in self.texts:
            self.texts[arguments] = _printed(*arguments, f"--ledger={self.ledger}")
        return self.texts[arguments]

    async def asked(self, *arguments: str) -> str:
        """What `gputally ARGUMENTS` prints of this aggregator or its cluster."""
        if arguments not in self.texts:
            of_cluster = arguments[0] == "posture"
            where = f"--kubeconfig={self.kubeconfig}" if of_cluster else f"--url={self.url}"
            process = await start(*arguments, where)
            out, errors = await process.communicate()
            assert process.returncode == 0, f"{' '.join(arguments)}: {errors.decode()}"
            self.texts[arguments] = out.decode()
        return self.texts[arguments]

    def query(self, sql: str) -> list[Json]:
        """The rows that `gputally ledger query` prints."""
        return [exact(line) for line in self.command("ledger", "query", "--output=json", sql).splitlines()]

    async def get(self, path: str) -> str:
        """What the aggregator answers over HTTP."""
        if (path,) not in self.texts:
            self.texts[path,] = await fetched(self.url, path)
        return self.texts[path,]

    async def samples(self, name: str, path: str = "/metrics") -> list[Sample]:
        """The samples of a metric."""
        lines = (line for line in (await self.get(path)).splitlines() if line.startswith(name))
        found = (each for line in lines if (each := _SAMPLE.fullmatch(line)) and each["name"] == name)
        return [(dict(_LABEL.findall(each["labels"] or "")), Decimal(each["value"])) for each in found]

    async def bills(self, window: str, *, by: str) -> Mapping[str, str]:
        """The CSV that `gputally showback` delivers, by tenant."""
        key = f"{window} {by}"
        if key not in self._bills:
            folder = self.scratch / f"showback-{len(self._bills)}"
            options = ShowbackOptions(
                url=self.url,
                credentials=Credentials(),
                parameters={"window": window, "by": by, "time_zone": "UTC"},
                directory=folder,
                formats=("csv",),
                webhook_url_file=None,
            )
            with contextlib.redirect_stdout(io.StringIO()):
                await showback(options)
            self._bills[key] = {path.stem: path.read_text() for path in sorted(folder.rglob("*.csv"))}
        return self._bills[key]


def exact(text: str) -> Json:
    """A JSON document whose numbers are decimals, as written."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _printed(*arguments: str) -> str:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(arguments)
    assert status == 0, f"{' '.join(arguments)}: {errors.getvalue()}"
    return out.getvalue()


async def fetched(url: str, path: str) -> str:
    """What the aggregator at `url` answers."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}{path}") as response:
        text = await response.text()
        assert response.status == 200, f"{path}: {response.status} {text}"
        return text
