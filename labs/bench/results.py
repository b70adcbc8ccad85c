"""Collects figures: prints them immediately, and writes them to a file at the end."""

import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from labs.bench.figure import Figure, line

PEER = "kube-state-metrics"
ALIKE = {
    "scrape.ms": "peer.ksm_scrape_ms",
    "scrape.mb": "peer.ksm_scrape_mb",
    "scrape.series": "peer.ksm_series",
    "memory.settled_mib": "peer.ksm_memory_mib",
}
"""gputally's figures and the corresponding ones of kube-state-metrics."""


class Results:
    """All figures of one run; a failed measurement is recorded and does not stop the others."""

    def __init__(self, file: Path) -> None:
        self.failed: list[str] = []
        self._file = file
        self._figures: list[Figure] = []

    def add(self, figures: Iterable[Figure]) -> None:
        """Store and print the figures, one by one as they are measured."""
        for figure in figures:
            self._figures.append(figure)
            sys.stdout.write(f"{line(figure)}\n")
            sys.stdout.flush()

    @contextmanager
    def attempt(self, what: str) -> Iterator[None]:
        """Run a measurement in this context; a failure is recorded and does not propagate."""
        try:
            yield
        except Exception:  # noqa: BLE001 - any failure, so that the other figures are still measured
            self.failed.append(what)
            sys.stderr.write(f"{what} could not be measured:\n{traceback.format_exc()}")

    def save(self) -> None:
        """Write the file and print a summary."""
        self._figures = beside_peer(self._figures)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(msgspec.json.format(msgspec.json.encode(self._figures), indent=1) + b"\n")
        with_goal = [figure for figure in self._figures if figure.goal]
        verdicts = [figure.verdict for figure in with_goal]
        failures = f"; not measured: {', '.join(self.failed)}" if self.failed else ""
        sys.stdout.write("\n" + "".join(f"{line(figure)}\n" for figure in with_goal))
        sys.stdout.write(
            f"{len(self._figures)} figures in {self._file}: {verdicts.count('met')} goals met, "
            f"{verdicts.count('missed')} missed{failures}\n"
        )


def beside_peer(figures: Sequence[Figure]) -> list[Figure]:
    """Add the peer's values at the same size, which are measured later."""
    values = {figure.name: figure.value for figure in figures}

    def peer_of(figure: Figure) -> float | None:
        name, _, pods = figure.name.partition("@")
        return values.get(f"{ALIKE[name]}@{pods}") if name in ALIKE else None

    peers = [peer_of(figure) for figure in figures]
    return [
        figure if peer is None else replace(figure, peer=PEER, peer_value=peer)
        for figure, peer in zip(figures, peers, strict=True)
    ]
