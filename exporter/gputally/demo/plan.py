"""What the user chose for the demo."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The user's options: a `scenario`, or a `trace` with its nodes to replay.

    `duration_s` None runs until stopped, or until the trace ends; `ledger` None uses a temporary ledger.
    """

    address: str
    ledger: Path | None
    seed: int
    speed: float
    scenario: str
    duration_s: int | None
    trace: Path | None = None
    trace_nodes: Path | None = None
    chaos: bool = False

    @property
    def subject(self) -> str:
        """The title of the run."""
        chaos = ", with chaos" if self.chaos else ""
        return (f"trace {self.trace}" if self.trace else f"scenario {self.scenario}") + chaos
