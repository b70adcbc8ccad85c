"""All checks that need no cluster, one line each, all of them before failing: `make verify`."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple


class Gate(NamedTuple):
    """A program of the virtual environment, which passes when it exits with 0. It must leave the tree as it is."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What became of a gate, and what it printed."""

    passed: bool
    seconds: float
    output: str


GATES: Final = (
    Gate("format", "ruff", ("format", "--check", ".")),
    Gate("lint", "ruff", ("check", "--no-fix", ".")),
    Gate("types", "mypy"),
    Gate("imports", "lint-imports"),
    Gate("generated", "python", ("-m", "hack.generate", "--check")),
    Gate("metrics", "python", ("-m", "monitoring.check", "metrics")),
    Gate("queries", "python", ("-m", "monitoring.check", "queries")),
    Gate("dashboards", "python", ("-m", "monitoring.check", "dashboards")),
    Gate("alerts", "python", ("-m", "monitoring.check", "alerts")),
    Gate("promtool", "python", ("-m", "hack.promtool")),
    Gate("docs", "pytest", ("-q", "-p", "no:cacheprovider", "tests/docs")),
    Gate("structure", "python", ("-m", "hack.structure")),
)
_AT_ONCE: Final = 2
_WIDTH: Final = max(len(gate.name) for gate in GATES)


def main() -> int:
    """Run every gate; 1 if any failed."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        outcomes = [_shown(gate, outcome) for gate, outcome in zip(GATES, pool.map(_outcome, GATES), strict=True)]
    return 0 if all(outcomes) else 1


def _outcome(gate: Gate) -> Outcome:
    started = time.monotonic()
    command = [str(Path(sys.executable).parent / gate.program), *gate.arguments]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return Outcome(ended.returncode == 0, time.monotonic() - started, ended.stdout)


def _shown(gate: Gate, outcome: Outcome) -> bool:
    verdict = "ok" if outcome.passed else "FAILED"
    last = outcome.output.strip().splitlines()[-1:] if outcome.passed else []
    print(f"{gate.name:<{_WIDTH}}  {verdict:<6}  {outcome.seconds:5.1f} s  {''.join(last)}".rstrip(), flush=True)
    if not outcome.passed:
        print(outcome.output)
    return outcome.passed


if __name__ == "__main__":
    sys.exit(main())
