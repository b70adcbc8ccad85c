"""Pages that name the ledger's schema version name the current one."""

import re

from gputally.ledger.sqlite.schema import newest_schema
from tests.docs.pages import TEXTS

NEWEST = newest_schema()


def test_pages_name_the_copy_that_the_next_upgrade_leaves() -> None:
    named = {page: re.findall(r"\.before-(\d+)", text) for page, text in TEXTS.items()}

    found = {page: versions for page, versions in named.items() if versions}
    assert found.keys() >= {"docs/install.md", "docs/accounting.md"}
    assert {version for versions in found.values() for version in versions} == {f"{NEWEST + 1:04}"}


def test_the_changelog_names_the_current_schema_version() -> None:
    assert re.findall(r"schema is (\d+)", TEXTS["CHANGELOG.md"])[0] == str(NEWEST)
