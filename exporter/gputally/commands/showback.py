"""`gputally showback` fetches the report of each tenant from an aggregator, and delivers it."""

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Final

from gputally.client.access import add_credentials
from gputally.formatting.formats import FILE_FORMATS
from gputally.process.command import run_until_stopped
from gputally.process.settings import add_epilog

_EXAMPLES: Final = """\
Asks an aggregator, so it needs no ledger. Schedule it on the first day of a month; the chart does so with `reports`.

examples:
  gputally showback --url http://localhost:9836 --directory showback
  gputally showback --url https://gpu.example:9836 --token-file token --webhook-url-file hook --window last-week

--directory gets a folder for each period, with a file for each tenant and format. --webhook-url-file names a file with
the URL of an incoming webhook, which gets one JSON document for each tenant: its `text` is the Markdown, as Slack and
Mattermost show it, beside `tenant`, `from` and `to`. A failed request is repeated four times, with growing pauses.
"""


def add_showback_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_showback)
    add_epilog(command, _EXAMPLES)
    add = command.add_argument
    url = os.environ.get("GPUTALLY_URL", "")
    add("--url", metavar="URL", default=url, help="address of the aggregator, such as http://localhost:9836")
    add("--window", metavar="PERIOD", default="last-month", help="as in gputally report [default: %(default)s]")
    add("--by", metavar="DIMENSION,...", default="job", help="what a row stands for [default: %(default)s]")
    add("--top", metavar="N", default="20", help="rows with the highest cost; one adds up the others [default: 20]")
    add("--time-zone", metavar="ZONE", default="UTC", help="of days and months, e.g. Europe/Berlin [default: UTC]")
    add("--directory", metavar="FOLDER", type=Path, help="write files to this folder, which is created if missing")
    add(
        "--formats",
        type=_formats,
        metavar="FORMAT,...",
        default=tuple(FILE_FORMATS),
        help=f"of the files [default: {','.join(FILE_FORMATS)}]",
    )
    add("--webhook-url-file", metavar="FILE", type=Path, help="post Markdown to the webhook whose URL is in this file")
    add_credentials(command)


def _formats(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in FILE_FORMATS]:
        raise ArgumentTypeError(f"'{unknown[0]}' is not valid; use {', '.join(FILE_FORMATS)}")
    return names


def _showback(parsed: Namespace) -> int:
    from gputally.commands.from_aggregator.showback import showback, showback_options  # noqa: PLC0415 - aiohttp, which --help needs not

    options = showback_options(parsed)
    return run_until_stopped(lambda: showback(options))
