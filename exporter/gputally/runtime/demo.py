"""The demo: the real aggregator on a simulated cluster, with a live table of what it finds."""

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from gputally.errors import ConfigError, Problem
from gputally.model.units import US_PER_SECOND, to_datetime
from gputally.runtime.aggregator import Running, aggregate
from gputally.runtime.log import configure
from gputally.runtime.settings import Settings
from gputally.runtime.table import table
from gputally.sim.cluster import SimCluster

MONDAY_SIX_US: Final = 1_780_898_400 * US_PER_SECOND
"""2026-06-08 06:00 UTC: two hours before the inference of S1 wakes up."""
_UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_REDRAW_SECONDS: Final = 1.0
_LINE_SECONDS: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What the user chose. `duration_s` None means: until told to stop; `ledger` None: one that is thrown away."""

    address: str
    ledger: Path | None
    seed: int
    speed: float
    scenario: str
    duration_s: float | None


def seconds(text: str) -> float | None:
    """`30s`, `5m`, `1h` or plain seconds; None for the empty text. Raises: ConfigError."""
    if not text:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not match or not float(match[1]):
        raise ConfigError([Problem("", "--for", f"'{text}' is no time; write one such as 30s or 5m")])
    return float(match[1]) * _UNITS[match[2]]


async def run(demo: Demo) -> None:
    """Run until the time is over or the task is cancelled; ends with a last table."""
    if demo.speed <= 0:
        raise ConfigError([Problem("", "--speed", f"{demo.speed} is not above 0; write one such as 600")])
    configure(level="warning", form="text")
    with _files(demo) as settings_of:
        async with SimCluster(seed=demo.seed, speed=demo.speed, start_us=_start_us(demo)) as cluster:
            cluster.run_scenario(demo.scenario)
            settings = settings_of(cluster.url)
            screen = _Screen(demo, cluster)
            try:
                async with asyncio.timeout(demo.duration_s):
                    await aggregate(settings, cluster.clock.now_us, started=screen.begin)
            except TimeoutError:
                pass  # the chosen end
            finally:
                screen.end()


def _start_us(demo: Demo) -> int:
    """A kept ledger goes on where the last run ended, so that its time never steps back."""
    if demo.ledger is None or not demo.ledger.exists():
        return MONDAY_SIX_US
    from gputally.ledger.sqlite import SqliteLedger  # noqa: PLC0415 - only for a kept ledger

    with SqliteLedger(demo.ledger) as ledger:
        return max(MONDAY_SIX_US, ledger.saved(now_us=MONDAY_SIX_US).at_us)


@contextmanager
def _files(demo: Demo) -> Iterator[partial[Settings]]:
    """The files the aggregator is started with: its example configuration, and a kubeconfig once the URL is known."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="gputally-demo-")))
        examples = stack.enter_context(as_file(files("gputally.runtime") / "examples"))
        yield partial(_settings, demo, scratch, examples)


def _settings(demo: Demo, scratch: Path, examples: Path, url: str) -> Settings:
    kubeconfig = scratch / "kubeconfig"
    named = {"cluster": "demo", "user": "demo"}
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "demo", "cluster": {"server": url}}],
                "users": [{"name": "demo", "user": {}}],
                "contexts": [{"name": "demo", "context": named}],
                "current-context": "demo",
            }
        )
    )
    return Settings(
        config=examples / f"demo-{demo.scenario}.yaml",
        prices=examples / "demo-prices.yaml",
        ledger=demo.ledger or scratch / "gputally.db",
        kubeconfig=str(kubeconfig),
        addresses=(demo.address,),
    )


class _Screen:
    """The live table: redrawn in place on a terminal, printed now and then elsewhere."""

    def __init__(self, demo: Demo, cluster: SimCluster) -> None:
        self._demo = demo
        self._cluster = cluster
        self._running: Running | None = None
        self._task: asyncio.Task[None] | None = None
        self._height = 0

    def begin(self, running: Running) -> None:
        """The aggregator serves: say where, and begin to draw."""
        self._running = running
        url = f"http://{running.addresses[0]}/metrics"
        say = sys.stdout.write
        say(
            f"gputally demo: scenario {self._demo.scenario}, seed {self._demo.seed}, {self._demo.speed:g} x real time\n"
        )
        say(
            f"metrics: {url}\nledger:  {self._demo.ledger or 'thrown away at the end (keep it with --ledger FILE)'}\n\n"
        )
        sys.stdout.flush()
        self._task = asyncio.get_running_loop().create_task(self._draw_for_ever(), name="screen")

    def end(self) -> None:
        """Draw a last time and stop."""
        if self._task:
            self._task.cancel()
            self._draw()
            sys.stdout.write("demo ended\n")

    async def _draw_for_ever(self) -> None:
        on_terminal = sys.stdout.isatty()
        while True:
            self._draw()
            await asyncio.sleep(_REDRAW_SECONDS if on_terminal else _LINE_SECONDS)

    def _draw(self) -> None:
        assert self._running is not None
        now_us = self._cluster.clock.now_us()
        gone_s = (now_us - self._cluster.clock.start_us) / US_PER_SECOND
        head = f"{to_datetime(now_us):%a %Y-%m-%d %H:%M} simulated, {gone_s / 3600:.1f} hours gone"
        text = f"{head}\n{table(self._running.books.fleet, now_us=now_us)}\n"
        if sys.stdout.isatty() and self._height:
            sys.stdout.write(f"\x1b[{self._height}A\x1b[J")
        sys.stdout.write(text)
        sys.stdout.flush()
        self._height = text.count("\n")
