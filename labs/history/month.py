"""What Prometheus would have scraped of gputally: the real accounting and the real exposition, in simulated time.

The accounting is told of each pod in the second it changes, and every scrape is the text that the catalog's metrics of
the fleet yield at that moment. What Prometheus adds itself is added: `up`, and the labels of the target, see `LABELS`.
The exporter's metrics of its own health, and the nodes' of theirs, of which the trace knows nothing, are left out.
"""

from collections import deque
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

from gputally.accounting.prices.price_book import PriceBook
from gputally.accounting.snapshot import publish
from gputally.catalog.all import FLEET
from gputally.config.prices.price_file import read_price_book
from gputally.export.text import END, render
from gputally.model.rules import Rules, TenantRule, TenantSource
from labs.history import agents
from labs.history.agents import Agents
from labs.history.window import Window
from labs.history.workload import Job, Workload
from tests.behaviour.product import PRICES
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay

TEAM: Final = "team"
"""The pods' label that names their tenant."""
LABELS: Final = {"job": "gputally", "instance": "gputally"}
_MODEL: Final = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
_RULES: Final = Rules(tenants=(TenantRule(source=TenantSource.POD_LABEL, key=TEAM),))
_LEDGER: Final = (0, 0)
"""What the ledger would say: the counters equal its segments, as every `flush` of the replay asserts."""


class Stage(IntEnum):
    """What becomes of a pod; of what happens in one second, GPUs are given back before others get them."""

    ENDED = 0
    DELETED = 1
    STARTED = 2


class News(NamedTuple):
    """What the watch of pods tells in that second."""

    second: int
    stage: Stage
    job: Job


class Cluster:
    """Tells the accounting what happens, in the second it does."""

    def __init__(self, replay: Replay, workload: Workload) -> None:
        """All nodes are there from the beginning."""
        self._replay = replay
        self._news = deque(_news(workload))
        self._agents = Agents()
        self._next_answers = agents.EVERY_S
        replay.see(*(NodeForm(name=name, gpus=gpus, labels=_MODEL) for name, gpus in workload.nodes.items()), at=0)

    def go_on(self, until: int) -> None:
        """Up to that second and with it."""
        while self._next_answers <= until:
            self._pods(self._next_answers)
            for answer in self._agents.answers(self._next_answers):
                self._replay.apply(answer)
            self._next_answers += agents.EVERY_S
        self._pods(until)

    def _pods(self, until: int) -> None:
        while self._news and self._news[0].second <= until:
            second, stage, job = self._news.popleft()
            if stage is Stage.STARTED:
                self._agents.begin(job)
            tell = self._replay.lose if stage is Stage.DELETED else self._replay.see
            tell(_form(job, stage), at=second)


def files(window: Window, workload: Workload, into: Path) -> Iterator[Path]:
    """The scrapes, in a file of OpenMetrics for each block, written when it is asked for."""
    replay = Replay(rules=_RULES, book=_book(into))
    cluster = Cluster(replay, workload)
    for number, scrapes in enumerate(window.blocks()):
        path = into / f"gputally-{number}.om"
        with path.open("wb") as out:
            for second in scrapes:
                cluster.go_on(second)
                out.write(_scraped(replay, second, at_s=window.start_s + second))
            out.write(END)
        replay.flush()
        yield path


def _book(folder: Path) -> PriceBook:
    path = folder / "prices.yaml"
    path.write_text(PRICES)
    return read_price_book(path)


def _news(workload: Workload) -> list[News]:
    return sorted(
        News(second, stage, job)
        for job in workload.jobs
        for stage, second in ((Stage.STARTED, job.start), (Stage.ENDED, job.end), (Stage.DELETED, job.deleted))
    )


def _form(job: Job, stage: Stage) -> PodForm:
    """The trace knows no queue and no image pull: a pod is bound and runs in the second in which it is created."""
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
    """In the form without `_created`, which nothing here asks for."""
    snapshot = publish(replay.fleet, now_us=us(second), ledger=_LEDGER)
    text = render(((metric, metric.rows(snapshot)) for metric in FLEET), openmetrics=False)
    moment = b" %d\n" % at_s
    samples = [line for line in text.splitlines() if not line.startswith(b"#")]
    return moment.join((*samples, b"up 1", b""))
