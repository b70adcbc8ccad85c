"""Checks the rules and runs their tests with promtool: `python -m hack.promtool`, part of `make verify`."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from hack.build import PROMTOOL

ROOT: Final = Path(__file__).parents[1]
REMEDY: Final = "promtool is not built: run `make promtool`, which needs Go, or put one on the PATH"


def program() -> str | None:
    """The path of the built promtool, or else of one on the PATH."""
    return str(PROMTOOL.path) if PROMTOOL.path.exists() else shutil.which("promtool")


def main(root: Path = ROOT) -> int:
    """Return 1 if promtool is missing, rejects a rule, or a test fails."""
    promtool = program()
    if promtool is None:
        print(REMEDY)
        return 1
    rules = sorted(map(str, root.glob("alerts/generated/rules/*.yaml")))
    tests = sorted(map(str, root.glob("tests/promtool/**/*.yaml")))
    commands = [[promtool, "check", "rules", "--lint=all", "--lint-fatal", *rules], [promtool, "test", "rules", *tests]]
    failed = [output for command in commands if (output := _failure(command)) is not None]
    print("\n".join(failed) if failed else f"{len(tests)} test files pass, for {len(rules)} rule files")
    return 1 if failed else 0


def _failure(command: list[str]) -> str | None:
    """The output of a failed command; None if it succeeds."""
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return process.stdout.strip() if process.returncode else None


if __name__ == "__main__":
    sys.exit(main())
