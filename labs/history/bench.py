"""Loads the month into two Prometheus servers: gputally's series and those of kube-state-metrics."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, NamedTuple

from hack.prometheus import QueryRefused
from labs.history import blocks, month, peer
from labs.history.questions import Question, Verdict, ask, to_gputally, to_peer
from labs.history.window import BLOCK_S, Window
from labs.history.workload import Workload
from tests.prometheus.server import Configuration, PrometheusServer

Files = Callable[[Window, Workload, Path], Iterator[Path]]


class Subject(NamedTuple):
    """A metrics source: its samples, target labels and questions."""

    name: str
    files: Files
    labels: Mapping[str, str]
    questions: Callable[[Window, Workload], Iterable[Question]]


GPUTALLY: Final = Subject("gputally", month.files, month.LABELS, to_gputally)
PEER: Final = Subject("peer", peer.files, peer.LABELS, to_peer)


def prepared(subject: Subject, window: Window, workload: Workload, folder: Path) -> Path:
    """The folder with the subject's blocks; they are created unless they exist from an earlier run."""
    home = folder / f"{subject.name}-{window.days}d-{window.interval}s"
    data, made = home / "data", home / "made.json"
    if not made.exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        made.write_text(json.dumps(_create_blocks(subject, window, workload, data)))
    say(f"{subject.name}: {' '.join(f'{value:,} {name}' for name, value in json.loads(made.read_text()).items())}")
    return data


def _create_blocks(subject: Subject, window: Window, workload: Workload, data: Path) -> dict[str, float]:
    """Create the blocks; return their contents and the times."""
    started = time.perf_counter()
    loading = blocks.build(subject.files(window, workload, data.parent), data, labels=subject.labels)
    writing = time.perf_counter() - started - loading
    took = {"s to write": round(writing, 1), "s for promtool": round(loading, 1)}
    return blocks.contents(data)._asdict() | took


def serving(data: Path) -> AbstractAsyncContextManager[PrometheusServer]:
    """Prometheus with default settings on these blocks, without compaction."""
    as_made = (f"--storage.tsdb.max-block-duration={BLOCK_S}s",)
    return PrometheusServer(data.parent / "server", Configuration(), data=data, flags=as_made)


def compare(server: PrometheusServer, questions: Iterable[Question], *, at_s: float) -> Iterator[str]:
    """One line of output per question."""
    for question in questions:
        try:
            yield _line(question, ask(server.api, question, at_s=at_s))
        except QueryRefused as refusal:
            yield f"{question.name}: {refusal}"


def series(server: PrometheusServer, window: Window) -> str:
    """The number of series in the window."""
    span = {"start": window.start_s, "end": window.end_s}
    found = server.api.get("series", {"match[]": '{__name__!=""}', **span})
    return f"{len(found):,} series"


HEAD: Final = (
    f"{'question':<44}{'seconds':>9}{'runs':>6}{'samples read':>14}"
    f"{'off in all':>12}{'worst tenant':>22}{'> 1 % off':>11}"
)


def _line(question: Question, verdict: Verdict) -> str:
    worst = f"{verdict.of_worst:+.4%} ({verdict.worst})"
    return (
        f"{question.name:<44}{verdict.seconds:9.3f}{verdict.runs:6}{verdict.samples_read:14,}"
        f"{verdict.in_all:+12.4%}{worst:>22}{verdict.wrong:11}"
    )


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
