"""Required node affinity in words."""

from collections.abc import Sequence
from typing import Final

from gputally.model.kube.pods import NodeSelectorTerm
from gputally.placement.exclusions import NO_REQUIREMENT, describe

_MOST_LETTERS: Final = 300
"""Anyone may write thousands of terms."""


def affinity_words(terms: Sequence[NodeSelectorTerm] | None) -> str:
    """`pool in (a, b), !spot or zone in (z1)`; "" for none. Longer ones are cut off."""
    found = ""
    for each in terms or ():
        found += f"{' or ' if found else ''}{_term(each)}"
        if len(found) > _MOST_LETTERS:
            return f"{found[:_MOST_LETTERS]}..."
    return found if terms is None or found else NO_REQUIREMENT


def _term(term: NodeSelectorTerm) -> str:
    requirements = (*(term.match_expressions or ()), *(term.match_fields or ()))
    return ", ".join(map(describe, requirements)) or NO_REQUIREMENT
