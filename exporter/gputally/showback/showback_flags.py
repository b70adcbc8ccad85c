"""The flags of `gputally showback`."""

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Final

from gputally.errors import ConfigError, Problem
from gputally.process.until_stopped import run_until_stopped
from gputally.setting import add_epilog
from gputally.showback.showback import showback
from gputally.showback.showback_options import FORMATS, ShowbackOptions
from gputally.top.access_flags import add_credentials, credentials_from, is_url

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
        default=tuple(FORMATS),
        help=f"of the files [default: {','.join(FORMATS)}]",
    )
    add("--webhook-url-file", metavar="FILE", type=Path, help="post Markdown to the webhook whose URL is in this file")
    add_credentials(command)


def _formats(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in FORMATS]:
        raise ArgumentTypeError(f"'{unknown[0]}' is not valid; use {', '.join(FORMATS)}")
    return names


def showback_options(parsed: Namespace) -> ShowbackOptions:
    """The parsed flags. Raises: ConfigError."""
    problems = []
    if not is_url(parsed.url):
        problems.append(Problem("", "--url", f"'{parsed.url}' is not a URL; use one such as http://localhost:9836"))
    if not (parsed.directory or parsed.webhook_url_file):
        problems.append(Problem("", "--directory", "name a folder for files, or --webhook-url-file, or both"))
    if parsed.user and not parsed.password_file:
        problems.append(Problem("", "--user", "requires --password-file"))
    if problems:
        raise ConfigError(problems)
    return ShowbackOptions(
        url=parsed.url,
        credentials=credentials_from(parsed),
        parameters={
            "window": parsed.window,
            "by": parsed.by,
            "top": parsed.top,
            "time_zone": parsed.time_zone,
        },
        directory=parsed.directory,
        formats=parsed.formats,
        webhook_url_file=parsed.webhook_url_file,
    )


def _showback(parsed: Namespace) -> int:
    options = showback_options(parsed)
    return run_until_stopped(lambda: showback(options))
