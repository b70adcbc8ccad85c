import re

import pytest

from tests.docs.pages import ROOT, TEXTS

LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """The anchors of the headings."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS)
def test_internal_links_have_a_target(page: str) -> None:
    targets = [target for target in LINK.findall(TEXTS[page]) if "://" not in target]
    missing = [target for target in targets if not has_target(page, target)]

    assert missing == []


def has_target(page: str, target: str) -> bool:
    path, _, anchor = target.partition("#")
    found = (ROOT / page).parent / path if path else ROOT / page
    return found.exists() and (not anchor or anchor in anchors(found.read_text()))


def test_every_page_is_linked_from_another_one() -> None:
    linked = {
        ((ROOT / page).parent / target.partition("#")[0]).resolve()
        for page, text in TEXTS.items()
        for target in LINK.findall(text)
        if "://" not in target
    }
    pages = {(ROOT / page).resolve() for page in TEXTS if page != "README.md"}

    assert pages - linked == set()
