"""Shows who holds which GPUs on a terminal: once, or live until the user quits."""

import asyncio
import os
import sys
import termios
import tty
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from gputally.client.access import Credentials, Service, access_problems, credentials_from, service_from
from gputally.client.aggregator import AggregatorClient, connected
from gputally.errors import AggregatorUnreachable, ConfigError, Problem
from gputally.model.api.allocations import AllocationsDocument
from gputally.output.top import KEYS, screen

_ROWS_OF_PIPE: Final = 120
"""The width of the table where there is no terminal."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """`url` "" reaches the `service` through kubectl. `once` prints one table; so does a pipe."""

    url: str
    service: Service
    credentials: Credentials
    by: str
    interval_s: float
    once: bool
    output: str


def options_from(parsed: Namespace) -> Options:
    """The parsed flags. Raises: ConfigError."""
    problems = access_problems(parsed)
    if not parsed.interval > 0:
        problems.append(Problem("", "--interval", f"{parsed.interval:g} is not a valid interval; use a number above 0"))
    if problems:
        raise ConfigError(problems)
    return Options(
        url=parsed.url,
        service=service_from(parsed, namespace=parsed.namespace),
        credentials=credentials_from(parsed),
        by=parsed.by,
        interval_s=parsed.interval,
        once=parsed.once,
        output=parsed.output,
    )


async def run(options: Options) -> None:
    """Show the allocations. Raises: AggregatorUnreachable, ConfigError."""
    async with connected(options.url, options.service, options.credentials) as client:
        if options.output == "json":
            sys.stdout.buffer.write(await client.read() + b"\n")
        elif options.once or not sys.stdout.isatty():
            console = Console(width=None if sys.stdout.isatty() else _ROWS_OF_PIPE, highlight=False)
            latest = await client.allocations()
            with console.capture() as printed:  # Rich would answer a closed pipe with exit status 1
                console.print(screen(latest, by=options.by, width=console.width, height=None))
            sys.stdout.write(printed.get())
        else:
            await _live(client, options)


async def _live(client: AggregatorClient, options: Options) -> None:
    """Redraw in each interval and on each key; a failed request keeps the last table and says so."""
    console = Console(highlight=False)
    latest, failure, by = await client.allocations(), "", options.by
    with Live(console=console, screen=True, auto_refresh=False) as live, _keys() as keys:
        while True:
            live.update(_drawn(latest, failure, by=by, console=console), refresh=True)
            key = await _next_key(keys, options.interval_s)
            if key == "q":
                return
            if key:
                by = KEYS.get(key, by)
                continue
            try:
                latest, failure = await client.allocations(), ""
            except AggregatorUnreachable as error:
                failure = str(error)


def _drawn(latest: AllocationsDocument, failure: str, *, by: str, console: Console) -> Group:
    height = console.height - (1 if failure else 0)
    found = screen(latest, by=by, width=console.width, height=height, keys=True)
    if failure:
        found.renderables.insert(0, Text(failure, style="bold red", no_wrap=True, overflow="ellipsis"))
    return found


async def _next_key(keys: "asyncio.Queue[str]", timeout_s: float) -> str:
    """The next key; "" if none is pressed in time."""
    with suppress(TimeoutError):
        return await asyncio.wait_for(keys.get(), timeout_s)
    return ""


@contextmanager
def _keys() -> Iterator["asyncio.Queue[str]"]:
    """Keys as they are pressed, without Enter; none if standard input is not a terminal."""
    keys: asyncio.Queue[str] = asyncio.Queue()
    if not sys.stdin.isatty():
        yield keys
        return
    before, loop = termios.tcgetattr(sys.stdin), asyncio.get_running_loop()

    def read() -> None:
        for key in _pressed() or "q":
            keys.put_nowait(key)

    tty.setcbreak(sys.stdin)
    loop.add_reader(sys.stdin, read)
    try:
        yield keys
    finally:
        loop.remove_reader(sys.stdin)
        with suppress(termios.error):  # the terminal was closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _pressed() -> str:
    """The pressed keys; "" once the terminal is closed, whose input would be ready forever."""
    try:
        return os.read(sys.stdin.fileno(), 64).decode(errors="replace")
    except OSError:
        return ""
