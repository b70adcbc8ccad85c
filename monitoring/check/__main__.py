"""Checks the generated dashboards and rules: `python -m monitoring.check`, or only one part, such as `queries`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from monitoring.check.gates import GATES, gathered

ROOT: Final = Path(__file__).parents[2]


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Print every problem, and how much was looked at; 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m monitoring.check", description=__doc__)
    parser.add_argument("gates", nargs="*", metavar="GATE", help=f"of {', '.join(GATES)}; all of them if none is named")
    wanted = parser.parse_args(arguments).gates or list(GATES)
    if unknown := sorted(set(wanted) - set(GATES)):
        parser.error(f"no gate is called {', '.join(unknown)}; there are {', '.join(GATES)}")
    evidence = gathered(root)
    found = [problem for name in wanted for problem in GATES[name](evidence)]
    sys.stdout.writelines(f"{problem}\n" for problem in found)
    loaded = evidence.loaded
    sys.stdout.write(
        f"{len(evidence.answers)} queries of {len(loaded.dashboards)} dashboards and {len(loaded.rules)} rule files, "
        f"{len(list(loaded.alerts))} alerts: {len(found) or 'no'} problems\n"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
