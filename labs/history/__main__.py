"""Compares a month of gputally's and a peer's metrics in Prometheus: `python -m labs.history --folder FOLDER`."""

import argparse
import asyncio
import sys
from pathlib import Path

from labs.history import dashboards, workload
from labs.history.bench import GPUTALLY, HEAD, PEER, compare, prepared, say, series, serving
from labs.history.window import Window


def main() -> int:
    """Return 0 if no dashboard query is rejected or too slow, else 1."""
    given = parser().parse_args()
    return asyncio.run(measure(Window(given.days, given.interval), given.folder, dashboards_in=given.dashboards))


def parser() -> argparse.ArgumentParser:
    """The command line; samples stay in the folder for the next run."""
    parser = argparse.ArgumentParser(prog="python -m labs.history", description=__doc__)
    add = parser.add_argument
    add("--folder", type=Path, required=True, help="where the blocks are, or will be: some 50 MB for a month")
    add("--days", type=int, default=Window().days, help="of the trace, from its beginning (default: %(default)s)")
    add("--interval", type=int, default=Window().interval, help="seconds between scrapes (default: %(default)s)")
    add("--dashboards", type=Path, default=dashboards.GENERATED, help="folder of their JSON (default: the project's)")
    return parser


async def measure(window: Window, folder: Path, *, dashboards_in: Path) -> int:
    """Query both servers, one at a time, and the dashboards on gputally's."""
    load = workload.read(window)
    homes = [(subject, prepared(subject, window, load, folder)) for subject in (PEER, GPUTALLY)]
    for subject, data in homes:
        async with serving(data) as server:
            say(f"\n{subject.name}: {series(server, window)}\n{HEAD}")
            for line in compare(server, subject.questions(window, load), at_s=window.end_s):
                say(line)
            asked = dashboards.ask_all(server.api, window, folder=dashboards_in) if subject is GPUTALLY else []
    say("")
    for line in dashboards.report(asked):
        say(line)
    return 1 if any(each.refusal or each.seconds >= dashboards.GOAL_S for each in asked) else 0


if __name__ == "__main__":
    sys.exit(main())
