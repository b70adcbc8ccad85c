"""promtool and amtool: what they refuse is raised in their own words."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from hack.build import AMTOOL, PROMTOOL, Binary
from tests.cluster.component import ComponentFailed

PATIENCE_SECONDS = 120
"""No tool takes that long; it turns a hang into a failure."""


class ToolFailed(Exception):
    """What the tool wrote."""


def built(binary: Binary) -> str:
    """The path of the program. Raises: ComponentFailed if it was never built."""
    if not binary.path.exists():
        raise ComponentFailed(f"not built yet: {binary.name}; run python -m hack.build")
    return str(binary.path)


def promtool(*arguments: str | Path) -> str:
    """What `promtool ARGUMENTS` writes. Raises: ToolFailed."""
    return output(PROMTOOL, *arguments)


def amtool(*arguments: str | Path) -> str:
    """What `amtool ARGUMENTS` writes. Raises: ToolFailed."""
    return output(AMTOOL, *arguments)


def output(binary: Binary, *arguments: str | Path) -> str:
    command = [built(binary), *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    if result.returncode:
        raise ToolFailed(f"{binary.name} {' '.join(command[1:])}\n{result.stdout}{result.stderr}")
    return result.stdout


def check_rules(*files: Path) -> str:
    """Says how many rules there are. Raises: ToolFailed, for what promtool only warns of too."""
    return promtool("check", "rules", "--lint=all", "--lint-fatal", *files)


def check_config(file: Path) -> str:
    """Of a prometheus.yml, with the rule files it names. Raises: ToolFailed."""
    return promtool("check", "config", file)


def run_rule_tests(*files: Path) -> str:
    """The rules' unit tests, in promtool's format. Raises: ToolFailed if one fails."""
    return promtool("test", "rules", *files)


def create_blocks(openmetrics: Path, data: Path, *, span: str = "31d") -> str:
    """Fill `data`, a folder for a server that is not running, with the file's samples, which end with `# EOF`.

    Samples need times, in seconds. A block covers `span` at most: promtool's own 2h takes far longer.
    """
    data.mkdir(parents=True, exist_ok=True)
    blocks = f"--max-block-duration={span}"
    return promtool("tsdb", "create-blocks-from", "openmetrics", "--quiet", blocks, openmetrics, data)


def check_alertmanager_config(file: Path) -> str:
    """Of an alertmanager.yml. Raises: ToolFailed."""
    return amtool("check-config", file)


def routed(file: Path, labels: Mapping[str, str]) -> list[str]:
    """The receivers to which the alertmanager.yml `file` sends an alert with `labels`, in order. Raises: ToolFailed."""
    pairs = [f"{name}={value}" for name, value in labels.items()]
    return amtool("config", "routes", "test", f"--config.file={file}", *pairs).strip().split(",")
