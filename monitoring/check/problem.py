"""One thing to mend, in one line."""

from typing import NamedTuple


class Problem(NamedTuple):
    """In which file, at which panel, alert or variable, what is wrong and what to do about it."""

    file: str
    place: str
    text: str

    def __str__(self) -> str:
        """`dashboards/generated/pending.json: panel "Pending pods": it has no description; say how to read it`."""
        return ": ".join(part for part in self if part)
