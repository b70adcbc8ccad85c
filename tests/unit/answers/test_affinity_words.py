"""Required node affinity in words."""

import pytest

from gputally.answers.why_waiting import affinity_words
from gputally.model.kube.pods import LabelRequirement, NodeSelectorTerm
from gputally.placement.taints_and_affinity import NO_REQUIREMENT

H100 = LabelRequirement(key="gpu", operator="In", values=("H100", "H200"))
NO_SPOT = LabelRequirement(key="spot", operator="DoesNotExist")


def term(*requirements: LabelRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=requirements)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (None, ""),
        ((), NO_REQUIREMENT),
        ((term(),), NO_REQUIREMENT),
        ((term(H100, NO_SPOT),), "gpu in (H100, H200), !spot"),
        ((term(H100), term(NO_SPOT)), "gpu in (H100, H200) or !spot"),
    ],
)
def test_terms_are_written_as_kubectl_writes_selectors(terms: tuple[NodeSelectorTerm, ...] | None, words: str) -> None:
    assert affinity_words(terms) == words


def test_thousands_of_terms_make_no_page() -> None:
    assert len(affinity_words((term(H100),) * 10_000)) < 400
