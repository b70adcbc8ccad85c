"""Tests the rules with promtool: they load, and each alert passes its promtool tests."""

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
    result = run(promtool, "check", "rules", "--lint=all", "--lint-fatal", *RULES)

    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("tests", TESTS, ids=lambda path: path.stem)
def test_an_alert_passes_its_promtool_tests(promtool: str, tests: Path) -> None:
    result = run(promtool, "test", "rules", tests)

    assert result.returncode == 0, result.stdout


def test_the_recommended_scrape_configuration_loads_with_all_rules(promtool: str) -> None:
    result = run(promtool, "check", "config", ROOT / "examples" / "prometheus.yml")

    assert result.returncode == 0, result.stdout
    assert f"{len(RULES)} rule files found" in result.stdout
