"""Each part of the fleet is made, drained, stored, restored and shown; nothing outside knows how the fleet is made."""

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args

import pytest
from msgspec import Struct
from msgspec.structs import fields

from gputally.accounting.base.state_part import DOCUMENTS, StatePart
from gputally.accounting.changes import Changes, Saved
from gputally.accounting.fleet import restore, snapshot
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.usage.usage import Usage
from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from gputally.model.rules import Rules

EXPORTER = Path(inspect.getfile(Fleet)).parents[2]
VALUES = {"rules", "book"}
"""What the fleet was given, as a whole: immutable values."""


def part_classes(base: type[Any] = StatePart) -> Iterator[type[StatePart[Any]]]:
    each: type[StatePart[Any]]
    for each in base.__subclasses__():
        if "name" in vars(each) and each.__module__.startswith("gputally."):
            yield each
        yield from part_classes(each)


def document_of(part: type[StatePart[Any]]) -> type[Struct]:
    document: type[Struct]
    [document] = get_args(vars(part)["__orig_bases__"][0])
    return document


def test_the_fleet_has_every_part() -> None:
    fleet = Fleet(
        rules=Rules(watched=tuple(OPTIONAL_RESOURCES)),
        book=None,
        saved=Saved(accounting_start_us=0, evaluated_us=0, at_us=0),
    )

    assert {type(part) for part in fleet.parts} == set(part_classes())


def test_a_part_has_a_name_and_a_type_of_documents_of_its_own() -> None:
    stored = [part for part in part_classes() if document_of(part) is not Struct]

    assert {part.name: document_of(part) for part in stored} == DOCUMENTS
    assert len(stored) == len(DOCUMENTS)


def keywords_of(function: Callable[..., Any], made: str) -> set[str]:
    """The keywords with which a function makes a struct."""
    calls = [each for each in ast.walk(ast.parse(dedent(inspect.getsource(function)))) if isinstance(each, ast.Call)]
    [call] = [each for each in calls if isinstance(each.func, ast.Name) and each.func.id == made]
    return {str(each.arg) for each in call.keywords}


@pytest.mark.parametrize(("function", "struct"), [(Fleet.drain, Changes), (snapshot.publish, snapshot.Snapshot)])
def test_all_of_it_is_filled_from_the_fleet(function: Callable[..., Any], struct: type[Struct]) -> None:
    assert keywords_of(function, struct.__name__) == {each.name for each in fields(struct)}


def test_all_that_was_saved_is_restored() -> None:
    sources = (inspect.getsource(restore), inspect.getsource(Fleet.__init__), inspect.getsource(Usage.restore))
    trees = [ast.parse(dedent(each)) for each in sources]
    read = {each.attr for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Attribute)}

    assert {each.name for each in fields(Saved)} <= read


def reaches(source: str) -> Iterator[str]:
    """Attributes of attributes of a fleet."""
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, ast.Attribute) and isinstance(part := each.value, ast.Attribute):
            whole = part.value
            name = whole.attr if isinstance(whole, ast.Attribute) else getattr(whole, "id", "")
            if name in {"fleet", "_fleet"} and part.attr not in VALUES:
                yield ast.unparse(each)


def test_nothing_outside_reaches_through_the_fleet() -> None:
    room = EXPORTER / "accounting" / "fleet"
    files = [each for each in EXPORTER.rglob("*.py") if each.parent != room]
    found = [f"{file.name}: {each}" for file in files for each in reaches(file.read_text())]

    assert len(files) > 400
    assert not found
