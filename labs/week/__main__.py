"""Draws a simulated week of preemptions, and compares its board with the ledger: `python -m labs.week --to FOLDER`."""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import aiohttp

from gputally.demo.demo import MONDAY_SIX_US
from gputally.export.text import END
from gputally.model.units import US_PER_SECOND
from hack.pictures.__main__ import main as draw
from hack.pictures.variables import Window
from labs.history import blocks
from labs.history.bench import say, serving
from labs.history.dashboards import GENERATED
from labs.history.day import Target, append
from labs.week.comparison import compared
from labs.week.stepped import SteppedCluster, stepped

EVERY_S: Final = 120
"""Simulated seconds between scrapes: a new series is exported as 0 for as long, so that its start is known."""
_DAY_S: Final = 24 * 3600
_START_S: Final = MONDAY_SIX_US // US_PER_SECOND


def main() -> int:
    """Return 0 if every board is drawn and no figure deviates from the ledger, else 1."""
    parser = argparse.ArgumentParser(prog="python -m labs.week", description=__doc__)
    add = parser.add_argument
    add("--to", type=Path, required=True, help="where the pictures go, as NAME.png")
    add("--boards", default="preemption", help="names of dashboards, separated by commas [%(default)s]")
    add("--days", type=float, default=7, help="simulated time, some 10 s for each [%(default)s]")
    add("--ledger", type=Path, help="keep the ledger here, for gputally preemptions and gputally report")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(draw_week(Path(scratch), given))


async def draw_week(scratch: Path, given: argparse.Namespace) -> int:
    """Simulate, load a real Prometheus, draw and compare."""
    started = time.perf_counter()
    ledger, data, span_s = scratch / "gputally.db", scratch / "data", int(given.days * _DAY_S)
    target, file = await scraped(scratch, ledger, until_s=_START_S + span_s)
    say(f"simulated {given.days:g} days in {time.perf_counter() - started:.0f} s")
    blocks.build([file], data, labels={"job": target.job, "instance": target.instance})
    if given.ledger:
        shutil.copyfile(ledger, given.ledger)
    window = Window(_START_S, _START_S + span_s, scrape=EVERY_S)
    async with serving(data) as server:
        failed = await asyncio.to_thread(_draw, given, server.url, window)
        off = False
        for line, is_off in await asyncio.to_thread(compared, server.api, ledger, window):
            say(line)
            off = off or is_off
    say(f"took {time.perf_counter() - started:.0f} s")
    return 1 if failed or off else 0


async def scraped(scratch: Path, ledger: Path, *, until_s: int) -> tuple[Target, Path]:
    """Scrape the aggregator into an OpenMetrics file with simulated timestamps."""
    path = scratch / "gputally.om"
    async with stepped(scratch, ledger) as cluster, aiohttp.ClientSession() as session:
        target = Target("gputally", "gputally", cluster.url)
        for second in range(_START_S, until_s + 1, EVERY_S):
            await _scrape(cluster, session, target, path, second)
    with path.open("ab") as out:
        out.write(END)
    return target, path


async def _scrape(
    cluster: SteppedCluster, session: aiohttp.ClientSession, target: Target, path: Path, second: int
) -> None:
    await cluster.advance(second * US_PER_SECOND)
    await append(session, target, path, at_us=second * US_PER_SECOND)


def _draw(given: argparse.Namespace, url: str, window: Window) -> int:
    boards = (str(GENERATED / f"{board}.json") for board in given.boards.split(","))
    at = datetime.fromtimestamp(window.end, UTC).isoformat()
    options = ("--at", at, "--range", f"{int(window.seconds)}s", "--scrape-interval", f"{EVERY_S}s")
    return draw([*boards, "--prometheus", url, *options, "--to", str(given.to)])


if __name__ == "__main__":
    sys.exit(main())
