"""Versions of PriorityClasses as rows."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gputally.ledger.records import PriorityClassRecord
from gputally.ledger.sqlite.rows import Row

if TYPE_CHECKING:  # of the writer alone
    from gputally.accounting.changes import Changes

_COLUMNS: Final = PriorityClassRecord.__struct_fields__
INSERT_CLASS_VERSION: Final = "INSERT OR REPLACE INTO priority_classes VALUES (?, ?, ?, ?, ?, ?)"
CLASS_VERSIONS: Final = f"""
SELECT {", ".join(_COLUMNS)} FROM priority_classes
WHERE from_us < :end AND (to_us IS NULL OR to_us > :start)
ORDER BY name, from_us
"""  # noqa: S608 (literals only)


def class_versions(changes: "Changes") -> Iterator[Row]:
    """New and ended versions."""
    return (tuple(getattr(each, name) for name in _COLUMNS) for each in changes.priority_classes.values())
