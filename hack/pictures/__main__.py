"""The command line: `python -m hack.pictures --help`."""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from hack.pictures.dashboard import Dashboard, read
from hack.pictures.durations import seconds
from hack.pictures.frames import panels_with_data, run_all
from hack.pictures.picture import draw, problems
from hack.pictures.variables import Window, chosen
from hack.prometheus import Prometheus

_WHAT: Final = "Draw committed Grafana dashboards to PNG, with the data of a Prometheus server."


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw every dashboard; 1 if any query failed, or something in a dashboard could not be drawn."""
    command = parser()
    parsed = command.parse_args(arguments)
    if not (parsed.to or parsed.check_only):
        command.error("--to FOLDER is needed, unless it is --check-only")
    prometheus = Prometheus(parsed.prometheus)
    found = [f"{path}: {problem}" for path in parsed.files for problem in _one(path, parsed, prometheus)]
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(prog="python -m hack.pictures", description=_WHAT, allow_abbrev=False)
    add = command.add_argument
    add("files", nargs="+", type=Path, metavar="FILE", help="a dashboard (JSON)")
    add("--prometheus", required=True, metavar="URL", help="the server to query")
    add("--at", type=moment, metavar="TIME", default=time.time(), help="the end of the time shown: Unix or ISO [now]")
    add("--range", type=seconds, metavar="TIME", help="how much is shown, e.g. 24h [what the dashboard says]")
    add("--scrape-interval", type=seconds, default=30.0, metavar="TIME", help="of the server [30s]")
    add("--var", action="append", default=[], type=assignment, metavar="NAME=VALUE", help="repeat it for more values")
    add("--to", type=Path, metavar="FOLDER", help="where the pictures go, as NAME.png")
    add("--check-only", action="store_true", help="draw nothing; only say which panels have data")
    return command


def moment(text: str) -> float:
    """Seconds since 1970 of a number or of an ISO time, which is in UTC unless it says otherwise."""
    try:
        return float(text)
    except ValueError:
        found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def assignment(text: str) -> tuple[str, str]:
    """A variable and its value."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(text)
    return name, value


def _one(path: Path, parsed: argparse.Namespace, prometheus: Prometheus) -> list[str]:
    """Draw or check one dashboard; what went wrong."""
    try:
        dashboard = read(path)
        window = _window(dashboard, parsed)
    except (msgspec.DecodeError, OSError, ValueError) as error:
        return [str(error)]
    try:
        return _queried(path, dashboard, parsed, prometheus=prometheus, window=window)
    except (msgspec.DecodeError, OSError) as error:  # a field's configuration, or the picture's file
        return [str(error)]


def _queried(
    path: Path, dashboard: Dashboard, parsed: argparse.Namespace, *, prometheus: Prometheus, window: Window
) -> list[str]:
    given = defaultdict[str, list[str]](list)
    for name, value in parsed.var:
        given[name].append(value)
    variables = chosen(dashboard.templating.list, given)
    filled = list(run_all(dashboard, prometheus, window=window, variables=variables))
    if parsed.check_only:
        for title, has_data in panels_with_data(filled).items():
            print(f"{path}: {'data' if has_data else 'NO DATA'}: {title}")
    else:
        picture = parsed.to / f"{path.stem}.png"
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw(dashboard, filled, window=window, variables=variables).save(picture)
        print(picture)
    return problems(filled)


def _window(dashboard: Dashboard, parsed: argparse.Namespace) -> Window:
    length = parsed.range or seconds(dashboard.time.from_.removeprefix("now-").partition("/")[0])
    return Window(parsed.at - length, parsed.at, scrape=parsed.scrape_interval)


if __name__ == "__main__":
    sys.exit(main())
