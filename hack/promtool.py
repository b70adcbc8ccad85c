"""Lets Prometheus' own tool read the rules and run their tests: `python -m hack.promtool`, part of `make verify`."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from hack.build import PROMTOOL

ROOT: Final = Path(__file__).parents[1]
REMEDY: Final = "promtool is not built: run `make promtool`, which needs Go, or put one on the PATH"


def program() -> str | None:
    """The one that was built, or else one on the PATH."""
    return str(PROMTOOL.path) if PROMTOOL.path.exists() else shutil.which("promtool")


def main(root: Path = ROOT) -> int:
    """1 if it is missing, refuses a rule, or a test fails."""
    promtool = program()
    if promtool is None:
        print(REMEDY)
        return 1
    rules = sorted(map(str, root.glob("alerts/generated/rules/*.yaml")))
    tests = sorted(map(str, root.glob("tests/promtool/*.yaml")))
    commands = [[promtool, "check", "rules", "--lint=all", "--lint-fatal", *rules], [promtool, "test", "rules", *tests]]
    failed = [output for command in commands if (output := _refused(command)) is not None]
    print("\n".join(failed) if failed else f"{len(tests)} files of tests pass, for {len(rules)} of rules")
    return 1 if failed else 0


def _refused(command: list[str]) -> str | None:
    """What it said, unless all is well."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return ended.stdout.strip() if ended.returncode else None


if __name__ == "__main__":
    sys.exit(main())
