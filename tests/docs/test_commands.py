import argparse
import re
import shlex
from pathlib import Path

import pytest

from gputally.cli import parser
from gputally.config.read import check
from gputally.config.tiers import PRESETS
from gputally.config.web_file import read_web_config
from gputally.errors import AddressTaken, ApiError, ConfigError, LedgerError
from hack.generate import outdated
from tests.docs.pages import ROOT, TEXTS, blocks, commands, table
from tests.fakes.whole_parser import whole_parser

USED = sorted({(page, command) for page, text in TEXTS.items() for command in commands(text, "gputally")})
YAML = [(page, block) for page, text in TEXTS.items() for block in blocks(text, "yaml") if block.startswith("kind:")]
SLURM = {"--allocations", "--allusers", "--duplicates", "--parsable", "--starttime"}
FILES = sorted(set((ROOT / "examples").rglob("*.yaml")) - {ROOT / "examples" / "alertmanager.yaml"})


def flags(command: argparse.ArgumentParser) -> set[str]:
    """The flags of a command and of its subcommands."""
    found = {flag for action in command._actions for flag in action.option_strings}
    nested = [action.choices.values() for action in command._actions if isinstance(action, argparse._SubParsersAction)]
    return found.union(*(flags(each) for commands in nested for each in commands))


@pytest.mark.parametrize(("page", "command"), USED)
def test_a_documented_command_parses_and_its_files_exist(page: str, command: str) -> None:
    parser().parse_args(shlex.split(command))

    paths = [word for word in shlex.split(command) if word.startswith(("examples/", "deploy/"))]
    assert [path for path in paths if not (ROOT / path).exists()] == [], page


@pytest.mark.parametrize("page", TEXTS)
def test_every_make_target_mentioned_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    mentioned = {match[1] for match in re.finditer(r"(?:`|\$ )make ([a-z0-9-]+)", TEXTS[page])}

    assert mentioned <= targets


@pytest.mark.parametrize("page", TEXTS)
def test_every_flag_mentioned_exists(page: str) -> None:
    known = SLURM | flags(whole_parser())
    kubectl = {
        "--clusterrole",
        "--from",
        "--from-literal",
        "--user",
        "--namespace",
        "--field-selector",
        "--for",
        "--replicas",
        "--show-labels",
        "--overwrite",
    }
    helm = {"--create-namespace", "--reuse-values", "--values", "--set", "--api-versions"}
    engines = {"--build-arg", "--file", "--namespace", "--tag", "--timestamp", "--version"}
    monitoring = {"--config", "--metric-labels-allowlist"}
    kai = {"--update-pod-eviction-condition"}
    mentioned = set(re.findall(r"(?<![\w-])--[a-z][a-z.-]+[a-z]", TEXTS[page]))

    assert mentioned <= known | kubectl | helm | engines | monitoring | kai


@pytest.mark.parametrize(("page", "block"), YAML)
def test_a_documented_file_has_no_problems(page: str, block: str, tmp_path: Path) -> None:
    file = tmp_path / f"{Path(page).stem}.yaml"
    file.write_text(block)

    assert check([file]) == []


def test_the_documented_web_configuration_has_no_problems(tmp_path: Path) -> None:
    [shown] = blocks(TEXTS["docs/web.md"], "yaml")
    file = tmp_path / "web.yml"
    file.write_text(shown)

    assert read_web_config(file).tls


def test_both_kinds_of_files_are_documented() -> None:
    assert {block.splitlines()[0] for _, block in YAML} == {"kind: Configuration", "kind: PriceBook"}


def test_the_example_files_have_no_problems() -> None:
    assert check(FILES) == []


def test_every_preset_is_documented_with_its_tiers() -> None:
    documented = {preset: tiers for preset, tiers, *_ in table(TEXTS["docs/configuration.md"], "Preset")}

    assert documented.keys() == PRESETS.keys()
    for preset, tiers in PRESETS.items():
        assert documented[preset] == ", ".join(tiers) or not tiers


def test_every_exit_status_is_documented() -> None:
    documented = {int(row[0]) for row in table(TEXTS["docs/configuration.md"], "Exit status")}

    assert documented >= {0, 1, *(error.exit_status for error in (ConfigError, ApiError, LedgerError, AddressTaken))}


def test_generated_pages_are_current() -> None:
    assert [path.name for path in outdated(ROOT)] == [], "run make generate"
