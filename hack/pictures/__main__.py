"""The command line: `python -m hack.pictures --help`."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hack.pictures.dashboard import read
from hack.pictures.frames import run
from hack.pictures.picture import draw
from hack.pictures.variables import Window, chosen, seconds
from hack.prometheus import Prometheus

_WHAT: Final = "Draw our Grafana dashboards to PNG, with the data of a Prometheus server."


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw every dashboard; return 1 if a query fails or a dashboard has an unsupported element."""
    command = argparse.ArgumentParser(prog="python -m hack.pictures", description=_WHAT, allow_abbrev=False)
    add = command.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="a dashboard (JSON)")
    add("--prometheus", required=True, metavar="URL", help="the server to query")
    add("--to", required=True, type=Path, metavar="FOLDER", help="where the pictures go, as NAME.png")
    add(
        "--at",
        type=datetime.fromisoformat,
        default=datetime.now(UTC),
        metavar="TIME",
        help="the end, ISO, in UTC [now]",
    )
    add("--range", type=seconds, metavar="TIME", help="how much is shown, e.g. 24h [what the dashboard says]")
    add("--scrape-interval", type=seconds, default=30.0, metavar="TIME", help="of the server [30s]")
    parsed = command.parse_args(arguments)
    problems = [f"{path}: {problem}" for path in parsed.files for problem in _drawn(path, parsed)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _drawn(path: Path, parsed: argparse.Namespace) -> list[str]:
    """Draw one dashboard and return the errors."""
    try:
        board = read(path)
        length = parsed.range or seconds(board.time["from"].removeprefix("now-"))
        end = (parsed.at if parsed.at.tzinfo else parsed.at.replace(tzinfo=UTC)).timestamp()
        window = Window(end - length, end, scrape=parsed.scrape_interval)
        variables, source = chosen(board.templating.list, {}), Prometheus(parsed.prometheus)
        filled = [run(panel, source, window=window, variables=variables) for panel in board.all_panels()]
        parsed.to.mkdir(parents=True, exist_ok=True)
        picture = parsed.to / f"{path.stem}.png"
        draw(board, filled, window=window, variables=variables).save(picture)
    except (OSError, ValueError) as error:  # an unreadable or invalid file
        return [str(error)]
    print(picture)
    return [f"{each.panel.title}: {error}" for each in filled for error in each.errors]


if __name__ == "__main__":
    sys.exit(main())
