"""Draws the dashboards of users from a day of the demo: `python -m labs.history.pictures --to docs/pictures`.

Those of gputally's own health would show the simulation: its time passes faster than that of its connections.
"""

import argparse
import asyncio
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from gputally.demo.demo import MONDAY_SIX_US
from gputally.model.units import US_PER_SECOND
from hack.pictures.__main__ import main as draw
from labs.history import blocks
from labs.history.bench import serving
from labs.history.dashboards import GENERATED
from labs.history.day import EVERY_S, scraped
from tests.monitoring_e2e.notify import RULES

BOARDS: Final = ("fleet", "tiers", "tenants", "node")
_HOUR_S: Final = 3600


def main() -> int:
    """Return 0 if every dashboard is drawn, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m labs.history.pictures", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--to", type=Path, required=True, help="where the pictures go, as NAME.png")
    parser.add_argument("--hours", type=float, default=28, help="simulated time, some 30 s for each [%(default)s]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        return asyncio.run(draw_day(Path(scratch), hours=given.hours, to=given.to))


async def draw_day(scratch: Path, *, hours: float, to: Path) -> int:
    """Scrape a day of scenario s1, record the hourly series, and draw the dashboards."""
    data = scratch / "data"
    for target, file in (await scraped("s1", hours=hours, into=scratch)).items():
        blocks.build([file], data, labels={"job": target.job, "instance": target.instance})
    begin_s = MONDAY_SIX_US // US_PER_SECOND
    end_s = begin_s + int(hours * _HOUR_S)
    async with serving(data) as server:
        blocks.record([RULES / "history.yaml"], data, url=server.url, span=(begin_s, end_s), step=_HOUR_S)
    at = datetime.fromtimestamp(end_s - EVERY_S, UTC).isoformat()
    async with serving(data) as server:
        boards = (str(GENERATED / f"{board}.json") for board in BOARDS)
        options = ("--at", at, "--range", f"{int(hours)}h", "--scrape-interval", f"{EVERY_S}s", "--to", str(to))
        return await asyncio.to_thread(draw, [*boards, "--prometheus", server.url, *options])


if __name__ == "__main__":
    sys.exit(main())
