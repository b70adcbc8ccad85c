"""The rules by Prometheus' own tool: they load, and each alert does in time what its tests say, and nothing else."""

import subprocess
from pathlib import Path

import pytest

from hack.promtool import REMEDY, ROOT, program

RULES = sorted((ROOT / "alerts" / "generated" / "rules").glob("*.yaml"))
TESTS = sorted((ROOT / "tests" / "promtool").glob("*.yaml"))


@pytest.fixture(scope="module")
def promtool() -> str:
    found = program()
    if found is None:
        pytest.skip(REMEDY)
    return found


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def test_the_rules_load_without_a_warning(promtool: str) -> None:
    ended = run(promtool, "check", "rules", "--lint=all", "--lint-fatal", *RULES)

    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("tests", TESTS, ids=lambda path: path.stem)
def test_an_alert_does_what_its_tests_say(promtool: str, tests: Path) -> None:
    ended = run(promtool, "test", "rules", tests)

    assert ended.returncode == 0, ended.stdout


def test_the_recommended_scrape_configuration_loads_with_all_rules(promtool: str) -> None:
    ended = run(promtool, "check", "config", ROOT / "examples" / "prometheus.yml")

    assert ended.returncode == 0, ended.stdout
    assert f"{len(RULES)} rule files found" in ended.stdout
