"""Write rules and dashboards for a configuration of one's own: `python -m monitoring --config FILE --to FOLDER`."""

import argparse
import sys
from pathlib import Path

from monitoring.config import ConfigInvalid, read
from monitoring.generate import generated


def main() -> int:
    """For the shell: 0, or 2 and what is wrong with the configuration."""
    parser = argparse.ArgumentParser(prog="python -m monitoring", description=__doc__)
    parser.add_argument("--config", type=Path, metavar="FILE", help="what differs from alerts/config.yaml")
    parser.add_argument("--to", type=Path, metavar="FOLDER", required=True, help="where the files go")
    arguments = parser.parse_args()
    try:
        files = generated(read(arguments.config))
    except ConfigInvalid as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    for name, content in files.items():
        path = arguments.to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    sys.stdout.write(f"{len(files)} files written below {arguments.to}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
