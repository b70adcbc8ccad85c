"""The live screen of the demo: redrawn in place on a terminal, otherwise printed periodically."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from gputally.aggregator.aggregator import RunningAggregator
from gputally.demo.plan import Demo
from gputally.demo.table import WIDE, events, tenant_table, tier_table, totals_line
from gputally.demo.waiting_example import waiting_example
from gputally.model.units import US_PER_SECOND, to_datetime
from gputally_sim.cluster import SimCluster
from gputally_sim.trace.replay import Replay

if TYPE_CHECKING:
    from gputally.model.disruptions import Victim

_REDRAW_SECONDS: Final = 1.0
_LINE_SECONDS: Final = 5.0
_PIPE_EVENTS: Final = 5
_LEAST_EVENTS: Final = 2
_GPU: Final = "requests.nvidia.com/gpu"


class Screen:
    """Draws what the aggregator accounts, once it runs."""

    def __init__(self, demo: Demo, cluster: SimCluster, replay: Replay | None) -> None:
        self._demo = demo
        self._cluster = cluster
        self._replay = replay
        self._start_us = cluster.clock.now_us()
        self._running: RunningAggregator | None = None
        self._started = asyncio.Event()
        self._preempted: dict[str, Victim] = {}
        self._exits = ExitStack()
        self._live: Live | None = None
        is_terminal = sys.stdout.isatty()
        self._console = Console(width=None if is_terminal else WIDE, highlight=False, soft_wrap=not is_terminal)

    def begin(self, running: RunningAggregator) -> None:
        """Print the addresses of the aggregator, which now serves."""
        self._running = running
        sys.stdout.write(f"{self._heading()}\n\n")
        sys.stdout.flush()
        if sys.stdout.isatty():
            self._live = self._exits.enter_context(Live(console=self._console, screen=True, auto_refresh=False))
        self._started.set()

    async def running(self) -> RunningAggregator:
        """The aggregator, once it serves."""
        await self._started.wait()
        assert self._running is not None
        return self._running

    async def draw_forever(self) -> None:
        """Draw periodically once the aggregator serves."""
        await self._started.wait()
        while True:
            self._draw()
            await asyncio.sleep(_REDRAW_SECONDS if self._live else _LINE_SECONDS)

    def end(self) -> None:
        """Leave the live screen, and print the final tables."""
        self._exits.close()
        self._live = None
        if self._running:
            self._draw()
            sys.stdout.write("demo ended\n")

    def _draw(self) -> None:
        if self._live:
            self._live.update(self._screen(height=self._console.height), refresh=True)
        else:
            with self._console.capture() as printed:  # Rich would answer a closed pipe with exit status 1
                self._console.print(self._screen(height=None))
            sys.stdout.write(printed.get())
            sys.stdout.flush()

    def _heading(self) -> str:
        assert self._running is not None
        demo = self._demo
        url = f"http://{self._running.addresses[0]}"
        asked = ("" if demo.trace else waiting_example(demo.scenario)) or "--all"
        return (
            f"gputally demo: {demo.subject}, seed {demo.seed}, {demo.speed:g} x real time (Ctrl-C ends it)\n"
            f"metrics: {url}/metrics\n"
            f"pages:   {url}/pending and {url}/report\n"
            f"ledger:  {demo.ledger or 'deleted at the end (keep it with --ledger FILE)'}\n"
            f"try:     gputally why {asked} --url {url}"
        )

    def _screen(self, *, height: int | None) -> Group:
        """All lines; with a `height`, the heading too, and as many events as fit."""
        assert self._running is not None
        fleet, (now_us, moment) = self._running.pipeline.fleet, self._moment()
        width = self._console.width
        tiers = tier_table(fleet, now_us=now_us, width=width)
        tenants = tenant_table(fleet, now_us=now_us, width=width, quotas=self._quotas())
        lines = [*(self._heading().splitlines() if height else ()), moment, totals_line(fleet)]
        most = _PIPE_EVENTS
        if height:
            most = max(_LEAST_EVENTS, height - len(lines) - tiers.row_count - tenants.row_count - 4)
        texts = [Text(line, no_wrap=bool(height), overflow="ellipsis") for line in lines]
        self._preempted |= fleet.preempted  # which forgets them after an hour, seconds here
        latest = events(fleet, self._preempted.values(), now_us=now_us, most=most)
        for event in latest:
            event.no_wrap, event.overflow = True, "ellipsis"
        heading = Text("latest preemptions and longest waits, newest first" if latest else "", style="bold")
        return Group(*texts, tiers, Text(), tenants, heading, *latest)

    def _moment(self) -> tuple[int, str]:
        """The simulated time, at most the end of a trace, and a line that says so."""
        now_us, start_us, part = self._cluster.now_us(), self._start_us, ""
        if (replay := self._replay) and replay.begun_us is not None:
            now_us, start_us = min(now_us, replay.end_us), replay.begun_us
            part = f", {replay.progress:.1%} of the trace"
        elapsed_s = (now_us - start_us) / US_PER_SECOND
        text = f"{to_datetime(now_us):%a %Y-%m-%d %H:%M} simulated, {elapsed_s / 3600:.1f} hours elapsed{part}"
        return now_us, text

    def _quotas(self) -> Mapping[str, int]:
        """GPUs of all ResourceQuotas of each namespace."""
        found: dict[str, int] = {}
        for quota in self._cluster.store.docs("resourcequotas"):
            namespace, gpus = quota["metadata"]["namespace"], int(quota["spec"]["hard"].get(_GPU, 0))
            found[namespace] = found.get(namespace, 0) + gpus
        return found
