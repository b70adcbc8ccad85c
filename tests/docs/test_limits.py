"""docs/limits.md has the limits of the code."""

from collections.abc import Mapping

import pytest

from gputally.accounting.base.limits import KEPT, SELECTOR_CHARACTERS, STORED, Limit
from gputally.placement.needs import MAX_RULES_OF_TEMPLATE, MAX_TEXT_OF_TEMPLATE
from tests.docs.pages import TEXTS, table

TEXT = TEXTS["docs/limits.md"]


@pytest.mark.parametrize(("heading", "limits"), [("Resource", KEPT), ("Document", STORED)])
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
