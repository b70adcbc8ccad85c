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

from gputally.aggregator.pages import PODS_PATH
from gputally.demo.demo import MONDAY_SIX_US
from gputally.exposition.text_format import END
from gputally.model.units import US_PER_SECOND
from hack.pictures.__main__ import main as draw
from hack.pictures.variables import Window
from labs.history import blocks
from labs.history.bench import say, serving
from labs.history.dashboards import GENERATED
from labs.history.day import Target, append
from labs.week.comparison import compared
from labs.week.practised import practised

EVERY_S: Final = 120
"""Simulated seconds between scrapes: a new series is exported as 0 for as long, so that its start is known."""
_FIRST_S: Final = 30
"""Simulated seconds until the first scrape: Prometheus usually does not scrape at full minutes."""
_DAY_S: Final = 24 * 3600
_START_S: Final = MONDAY_SIX_US // US_PER_SECOND
_SCALED_UP_S: Final = _START_S + 4 * _DAY_S + 5400 + _FIRST_S
"""Friday 07:30:30: at 07:30 inference begins to preempt."""


def main() -> int:
    """Return 0 if every board is drawn and no figure deviates from the ledger, else 1."""
    parser = argparse.ArgumentParser(prog="python -m labs.week", description=__doc__)
    add = parser.add_argument
    add("--to", type=Path, required=True, help="where the pictures go, as NAME.png")
    add("--days", type=float, default=7, help="simulated time, some 15 s for each [%(default)s]")
    add("--ledger", type=Path, help="keep the ledger here, for gputally preemptions and gputally report")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(draw_week(Path(scratch), given))


async def draw_week(scratch: Path, given: argparse.Namespace) -> int:
    """Simulate, load a real Prometheus, draw and compare."""
    started = time.perf_counter()
    ledger, data, span_s = scratch / "gputally.db", scratch / "data", int(given.days * _DAY_S)
    files = await scraped(scratch, ledger, until_s=_START_S + span_s)
    say(f"simulated {given.days:g} days in {time.perf_counter() - started:.0f} s")
    for target, file in files.items():
        blocks.build([file], data, labels={"job": target.job, "instance": target.instance})
    if given.ledger:
        shutil.copyfile(ledger, given.ledger)
    window = Window(_START_S, _START_S + span_s, scrape=EVERY_S)
    async with serving(data) as server:
        failed = await asyncio.to_thread(_draw_all, given.to, server.url, window)
        off = False
        for line, is_off in await asyncio.to_thread(compared, server.api, ledger, window):
            say(line)
            off = off or is_off
    say(f"took {time.perf_counter() - started:.0f} s")
    return 1 if failed or off else 0


async def scraped(scratch: Path, ledger: Path, *, until_s: int) -> dict[Target, Path]:
    """Scrape the aggregator into OpenMetrics files with simulated timestamps."""
    async with practised(scratch, ledger) as cluster, aiohttp.ClientSession() as session:
        targets = (
            Target("gputally", "gputally", cluster.url),
            Target("gputally-pods", "gputally", cluster.url, PODS_PATH),
        )
        files = {target: scratch / f"{target.job}.om" for target in targets}
        for second in range(_START_S + _FIRST_S, until_s, EVERY_S):
            await cluster.advance(second * US_PER_SECOND)
            for target, path in files.items():
                await append(session, target, path, at_us=second * US_PER_SECOND)
    for path in files.values():
        with path.open("ab") as out:
            out.write(END)
    return files


def _draw_all(to: Path, url: str, window: Window) -> int:
    """The week of preemptions, and the day before some of them are under way."""
    failed = _draw("preemption", to, url, window)
    if window.end >= _SCALED_UP_S:
        failed |= _draw("pending", to, url, Window(_SCALED_UP_S - _DAY_S, _SCALED_UP_S))
    return failed


def _draw(board: str, to: Path, url: str, shown: Window) -> int:
    at = datetime.fromtimestamp(shown.end, UTC).isoformat()
    options = ("--at", at, "--range", f"{int(shown.seconds)}s", "--scrape-interval", f"{EVERY_S}s", "--to", str(to))
    return draw([str(GENERATED / f"{board}.json"), "--prometheus", url, *options])


if __name__ == "__main__":
    sys.exit(main())
