"""The code map draws and describes the packages as they are, and recipes name files that exist."""

import re
import tomllib

import pytest

from tests.docs.pages import ROOT, TEXTS, blocks, table
from tests.docs.test_links import LINK, has_target

PAGE = TEXTS["docs/architecture.md"]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
PRODUCT = ROOT / "exporter" / "gputally"
NAMED = re.compile(r"`((?:\w+/)*\w+\.(?:py|yaml))`")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def layers(container: str) -> list[set[str]]:
    """The layers of the contract for a package, from above."""
    [found] = [each for each in CONTRACTS if each["type"] == "layers" and each["containers"] == [container]]
    return [set(each.split(" | ")) - {"__main__"} for each in found["layers"] if each != "__main__"]


ROOMS = set().union(*layers("gputally"))


def test_the_picture_has_the_layers_of_the_contract() -> None:
    _, picture = blocks(PAGE, "text")
    lines = [set(line[14:].split(" | ")) & ROOMS for line in picture.splitlines()]

    assert [line for line in lines if line] == layers("gputally")


def test_the_table_of_accounting_has_the_layers_of_its_contract() -> None:
    assert [set(row[0].split(", ")) for row in table(PAGE, "Packages, from above")] == layers("gputally.accounting")


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_each_room_has_a_paragraph_whose_modules_exist(room: str) -> None:
    [paragraph] = [each for each in PAGE.split("\n\n") if each.startswith(f"**{room}** ")]
    modules = NAMED.findall(paragraph)

    assert modules
    assert [each for each in modules if not (PRODUCT / each).is_file()] == []


def test_recipes_name_files_that_exist() -> None:
    named = NAMED.findall(CONTRIBUTING)

    assert len(named) > 20
    assert [each for each in named if not any((root / each).is_file() for root in (ROOT, PRODUCT))] == []


def test_links_of_recipes_have_a_target() -> None:
    assert [each for each in LINK.findall(CONTRIBUTING) if not has_target("CONTRIBUTING.md", each)] == []
