"""Runs all checks that need no cluster, and prints one line for each: `make verify`."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple


class Gate(NamedTuple):
    """A program from the virtual environment that passes if it exits with 0. It must not modify the tree."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """The result and output of a gate."""

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
        outcomes = [_report(gate, outcome) for gate, outcome in zip(GATES, pool.map(_outcome, GATES), strict=True)]
    return 0 if all(outcomes) else 1


def _outcome(gate: Gate) -> Outcome:
    started = time.monotonic()
    command = [str(Path(sys.executable).parent / gate.program), *gate.arguments]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return Outcome(process.returncode == 0, time.monotonic() - started, process.stdout)


def _report(gate: Gate, outcome: Outcome) -> bool:
    verdict = "ok" if outcome.passed else "FAILED"
    last = outcome.output.strip().splitlines()[-1:] if outcome.passed else []
    print(f"{gate.name:<{_WIDTH}}  {verdict:<6}  {outcome.seconds:5.1f} s  {''.join(last)}".rstrip(), flush=True)
    if not outcome.passed:
        print(outcome.output)
    return outcome.passed


if __name__ == "__main__":
    sys.exit(main())
