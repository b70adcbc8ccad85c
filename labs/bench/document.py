"""Writes the last run's figures to docs/contributing/performance.md: `python -m labs.bench.document [FILE]`."""

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from labs.bench.figure import STATED_PODS, Figure, shown

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "contributing" / "performance.md"
GOALS: Final = {
    "start.ready_s": "Start until ready, without a ledger",
    "start.ready_over_drain": "The same over a bare drain of the same list",
    "start.restart_s": "Restart until ready, with its ledger",
    "start.restart_over_start": "The same over a start",
    "peer.ksm_ready_s": "kube-state-metrics, until it shows all pods",
    "scrape.ms": "Scrape, median",
    "scrape.ms_p99": "Scrape, p99",
    "scrape.mb": "Scrape, size",
    "scrape.series": "Scrape, series",
    "memory.settled_mib": "Resident memory",
    "memory.peak_mib": "Resident memory, most ever",
    "scrape.by_pod_ms": "Scrape of the series by pod, median",
    "scrape.by_pod_mb": "Scrape of the series by pod, size",
    "memory.by_pod_mib": "Resident memory with the series by pod",
    "latency.ms": "API event until visible, median",
    "latency.ms_p99": "API event until visible, p99",
    "watch.list_per_s": "Objects of a recorded list accounted",
    "watch.churn_per_s": "Events of a recorded watch accounted",
}
WAITING: Final = {
    "pending.known_after_ready_s.2000waiting": "With 2,000 pending pods: from ready until all have a verdict",
    "pending.verdict_ms_p99.2000waiting": "The same: API event until verdicts follow, p99",
    "pending.scrape_ms.2000waiting": "The same: scrape, median",
    "pending.memory_mib.2000waiting": "The same: resident memory",
    "pending.known_after_ready_s.2000waiting+100000others": "Beside 100,000 others: until all have a verdict",
    "pending.verdict_ms_p99.2000waiting+100000others": "The same: API event until verdicts follow, p99",
    "pending.scrape_ms.2000waiting+100000others": "The same: scrape, median",
    "pending.memory_mib.2000waiting+100000others": "The same: resident memory",
}
GROWTH: Final = GOALS | {
    "start.drain_stream_s": "Bare drain of the list as a stream of events",
    "start.drain_list_s": "Bare drain of the list",
    "start.drain_stream_mb": "Size of the list",
    "apiserver.memory_mib": "Resident memory of the API server",
}
STAGES: Final = {
    "start.imports_s": "Start Python and import",
    "micro.decode_us_per_pod": "Decode a pod",
    "micro.apply_new_us_per_pod": "Account a pod that is new",
    "micro.apply_repeat_us_per_pod": "Account one that says nothing new",
    "micro.apply_end_us_per_pod": "Account one that ended",
    "micro.ledger_write_new_us_per_pod": "Write a new allocation",
    "micro.ledger_write_ended_us_per_pod": "Write an ended one",
    "micro.restore_us_per_pod": "Read a pod back at a restart",
    "micro.publish_ms": "Evaluate all counters",
    "micro.rows_ms": "Make the rows of all metrics",
    "micro.render_ms": "Render them",
    "micro.exposition_text_ms@8000series": "Render 8,000 series as text",
    "micro.exposition_openmetrics_ms@8000series": "Render 8,000 series as OpenMetrics",
    "micro.exposition_text_ms@50000series": "Render 50,000 series as text",
    "micro.exposition_openmetrics_ms@50000series": "Render 50,000 series as OpenMetrics",
    "micro.ledger_write_nothing_ms": "Commit a scrape that changed nothing",
    "micro.ledger_open_200mb_ms": "Open a ledger of 200 MB",
    "micro.ledger_read_all_200mb_ms": "Read all segments of it",
    "micro.ledger_read_us_per_pod": "The same, for each pod",
}

Figures = Mapping[str, Figure]


def main() -> int:
    """Replace each table of the page between its two markers."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "bench.json"
    figures = {figure.name: figure for figure in msgspec.json.decode(file.read_bytes(), type=list[Figure])}
    day = datetime.fromtimestamp(file.stat().st_mtime, UTC).strftime("%Y-%m-%d")
    text = PAGE.read_text()
    for name, body in tables(figures, day).items():
        text, count = re.subn(rf"(<!-- {name} -->\n).*?(<!-- end -->)", rf"\1\n{body}\n\n\2", text, flags=re.DOTALL)
        assert count == 1, f"{PAGE} has no place for {name}"
    PAGE.write_text(text)
    return 0


def tables(figures: Figures, day: str) -> dict[str, str]:
    """The tables by marker name."""
    sizes = sorted({int(pods) for _, at, pods in map(_parts, figures) if at and pods.isdigit()})
    largest = max((pods for pods in sizes if pods <= STATED_PODS), default=0)
    return {
        "machine": _machine(figures, day, largest),
        "goals": "\n".join(_goals(figures, largest)),
        "growth": "\n".join(_growth(figures, sizes)),
        "stages": "\n".join(_stages(figures, largest)),
    }


def _parts(name: str) -> tuple[str, str, str]:
    return name.partition("@")


def _machine(figures: Figures, day: str, pods: int) -> str:
    cores, memory = figures["machine.cores"].value, figures["machine.memory_gib"].value
    busy = max((figure.value for name, figure in figures.items() if name.startswith("machine.busy")), default=0.0)
    return (
        f"Measured on {day} on {cores:g} cores and {memory:.0f} GiB, which the API server, etcd and the measuring\n"
        f"process shared. The table of goals is for {pods:,} pods. At rest, others kept {busy:.2g} cores busy at most."
    )


def _goals(figures: Figures, pods: int) -> Iterator[str]:
    yield "| What | Measured | Goal | Reached | Beside it |"
    yield "| --- | ---: | ---: | --- | --- |"
    for name, what in (GOALS | WAITING).items():
        if figure := figures.get(f"{name}@{pods}"):
            goal = f"{figure.goal} {figure.unit}".replace("<=", "≤").replace(">=", "≥") if figure.goal else ""
            reached = {"met": "yes", "missed": "**no**"}.get(figure.verdict, "")
            yield f"| {what} | {_value(figure)} | {goal} | {reached} | {_peer(figure)} |"


def _growth(figures: Figures, sizes: list[int]) -> Iterator[str]:
    yield "| What | " + " | ".join(f"{pods:,} pods" for pods in sizes) + " |"
    yield "| --- |" + " ---: |" * len(sizes)
    for name, what in GROWTH.items():
        cells = [figures.get(f"{name}@{pods}") for pods in sizes]
        if any(cells):
            yield f"| {what} | " + " | ".join(_value(cell) if cell else "" for cell in cells) + " |"


def _stages(figures: Figures, pods: int) -> Iterator[str]:
    yield "| Stage | Cost | Beside it |"
    yield "| --- | ---: | --- |"
    for name, what in STAGES.items():
        if figure := figures.get(name) or figures.get(f"{name}@{pods}"):
            yield f"| {what} | {_value(figure)} | {_peer(figure)} |"


def _value(figure: Figure) -> str:
    return f"{shown(figure.value)} {figure.unit}"


def _peer(figure: Figure) -> str:
    return f"{figure.peer}: {shown(figure.peer_value)} {figure.unit}" if figure.peer_value is not None else ""


if __name__ == "__main__":
    sys.exit(main())
