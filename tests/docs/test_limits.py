"""docs/limits.md has the limits of the code."""

from collections.abc import Mapping

import pytest

from gputally.accounting.base.limits import SELECTOR_CHARACTERS
from gputally.accounting.base.state_part import DOCUMENTS
from gputally.model.kube.kinds import OPTIONAL_RESOURCES, Kind, Limit
from gputally.model.rules import Rules
from gputally.placement.needs import MAX_RULES_OF_TEMPLATE, MAX_TEXT_OF_TEMPLATE
from tests.core.replay import Replay
from tests.docs.pages import TEXTS, table

TEXT = TEXTS["docs/limits.md"]
WATCHED = {kind: kind.limit for kind in Kind}
PARTS = Replay(rules=Rules(watched=OPTIONAL_RESOURCES)).fleet.parts
STORED = {part.name: part.document_limit for part in PARTS if part.name in DOCUMENTS}


@pytest.mark.parametrize(("heading", "limits"), [("Resource", WATCHED), ("Document", STORED)])
def test_the_tables_have_each_limit_of_the_code(heading: str, limits: Mapping[str, Limit]) -> None:
    written = {name: (own, everywhere) for name, own, everywhere, _ in table(TEXT, heading)}

    assert written == {str(name): (words(each.in_namespace), words(each.in_all)) for name, each in limits.items()}


def test_the_length_of_selectors_is_that_of_the_code() -> None:
    assert f"more than {SELECTOR_CHARACTERS:,} characters" in TEXT.replace("\n  ", " ")


def test_what_is_kept_of_templates_is_that_of_the_code() -> None:
    text = TEXT.replace("\n  ", " ")

    assert f"only if they are up to {MAX_RULES_OF_TEMPLATE}, with up to {MAX_TEXT_OF_TEMPLATE:,} characters" in text


def words(limit: int | None) -> str:
    return "none" if limit is None else f"{limit:,}"
