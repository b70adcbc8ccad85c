"""Generates gputally's samples for Prometheus with the real accounting and exposition, in simulated time.

The accounting observes each pod in the second it changes. Every scrape is the rendered text of the catalog's fleet
metrics at that time, plus what Prometheus adds: `up` and the target labels, see `LABELS`. Health metrics of the
exporter and of nodes are omitted, because the trace has no data for them.
"""

from collections import deque
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.prices.book import PriceBook
from gputally.accounting.totals.total import RECONCILED
from gputally.catalog.all import FLEET
from gputally.config.prices import read_price_book
from gputally.exposition.text_format import END, render
from gputally.model.rules import Rules, TenantRule, TenantSource
from labs.history import agents
from labs.history.agents import Agents
from labs.history.window import Window
from labs.history.workload import Job, Workload
from tests.behaviour.product import PRICES
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

TEAM: Final = "team"
"""The pod label with the tenant."""
LABELS: Final = {"job": "gputally", "instance": "gputally"}
_MODEL: Final = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
_RULES: Final = Rules(tenants=(TenantRule(source=TenantSource.POD_LABEL, key=TEAM),))
_LEDGER: Final = dict.fromkeys(RECONCILED, (0, 0))
"""The reconciliation differences of the ledger: every `flush` of the replay asserts that there is none."""


class Stage(IntEnum):
    """A change of a pod; within one second, GPUs are released before others are allocated."""

    ENDED = 0
    DELETED = 1
    STARTED = 2


class PodChange(NamedTuple):
    """A pod watch event in that second."""

    second: int
    stage: Stage
    job: Job


class Cluster:
    """Feeds the accounting with the workload's events, second by second."""

    def __init__(self, replay: Replay, workload: Workload) -> None:
        """All nodes exist from the start."""
        self._replay = replay
        self._changes = deque(_changes(workload))
        self._agents = Agents()
        self._next_answers = agents.EVERY_S
        replay.see(*(NodeForm(name=name, gpus=gpus, labels=_MODEL) for name, gpus in workload.nodes.items()), at=0)

    def advance(self, until: int) -> None:
        """Apply all events up to and including the second `until`."""
        while self._next_answers <= until:
            self._apply_pods(self._next_answers)
            for answer in self._agents.answers(self._next_answers):
                self._replay.apply(answer)
            self._next_answers += agents.EVERY_S
        self._apply_pods(until)

    def _apply_pods(self, until: int) -> None:
        while self._changes and self._changes[0].second <= until:
            second, stage, job = self._changes.popleft()
            if stage is Stage.STARTED:
                self._agents.begin(job)
            observe = self._replay.lose if stage is Stage.DELETED else self._replay.see
            observe(_form(job, stage), at=second)


def files(window: Window, workload: Workload, into: Path) -> Iterator[Path]:
    """Write the scrapes as one OpenMetrics file per block; files are generated lazily."""
    replay = Replay(rules=_RULES, book=_book(into))
    cluster = Cluster(replay, workload)
    for number, scrapes in enumerate(window.blocks()):
        path = into / f"gputally-{number}.om"
        with path.open("wb") as out:
            for second in scrapes:
                cluster.advance(second)
                out.write(_scraped(replay, second, at_s=window.start_s + second))
            out.write(END)
        replay.flush()
        yield path


def _book(folder: Path) -> PriceBook:
    path = folder / "prices.yaml"
    path.write_text(PRICES)
    return read_price_book(path)


def _changes(workload: Workload) -> list[PodChange]:
    return sorted(
        PodChange(second, stage, job)
        for job in workload.jobs
        for stage, second in ((Stage.STARTED, job.start), (Stage.ENDED, job.end), (Stage.DELETED, job.deleted))
    )


def _form(job: Job, stage: Stage) -> PodForm:
    """The pod after `stage`. The trace has no queueing or image pulls, so pods start in the second of creation."""
    ended = stage is not Stage.STARTED
    return PodForm(
        name=job.name,
        uid=job.uid,
        namespace=job.tenant,
        labels={TEAM: job.tenant},
        gpus=job.gpus,
        node=job.node,
        created=job.start,
        scheduled=job.start,
        started=job.start,
        finished=job.end if ended else None,
        phase=job.phase if ended else "Running",
    )


def _scraped(replay: Replay, second: int, *, at_s: int) -> bytes:
    """The samples of one scrape, in the text format, because `_created` series are not needed."""
    snapshot = publish(replay.fleet, now_us=us(second), ledger=_LEDGER)
    text = render(((metric, metric.rows(snapshot)) for metric in FLEET), openmetrics=False)
    moment = b" %d\n" % at_s
    samples = [line for line in text.splitlines() if not line.startswith(b"#")]
    return moment.join((*samples, b"up 1", b""))
