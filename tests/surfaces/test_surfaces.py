"""Every surface says the same about a ledger, at one cut-off. A new question or surface is a line in questions.py."""

from pathlib import Path
from typing import Final

import pytest

from tests.fakes.command import ROOT
from tests.surfaces.comparison import Compared, compare
from tests.surfaces.differences import DIFFERENCES, reason_of
from tests.surfaces.questions import QUESTIONS
from tests.surfaces.scenes import SCENES

BUDGETS: Final = "what is spent of budgets"
UNCREATED: Final = {
    "GPU-hours of pods that do not exist, by tier and cause",
    "pods that do not exist now, by tier and reason",
    "GPUs of pods that do not exist now, by tier and reason",
}
EXAMPLES: Final = {
    *UNCREATED,
    "pods that others should not precede, by finding",
    "partial gangs now, by tier",
    "GPUs that partial gangs hold now, by tier",
    "stranded GPUs now, by model, pool and reason",
}
"""What only the scenario of pods that wait has examples of."""
QUOTAS: Final = {"GPUs that quotas allow, in all", "GPUs that quotas have used, in all"}
UNANSWERED: Final = {
    "s1": {
        *(BUDGETS, *EXAMPLES, *QUOTAS),
        "pods that fit now, by model, pool and size",
        "pods that fit now, by size",
    },
    "s2": EXAMPLES,
    "waits": {
        BUDGETS,
        *(question.name for question in QUESTIONS if question.name.startswith(("lost", "GPU-hours lost", "preempted"))),
        "disrupted pods by tier, tenant and cause",
        "GPUs that quotas have used, in all",
    },
    "campaign": {
        *(BUDGETS, *EXAMPLES, *QUOTAS),
        "cost per hour of GPUs that pods wait for, by pod",
        "cost per hour of GPUs that pods wait for, by reason",
        "cost per hour of GPUs that pods wait for, in all",
        "cost of waits so far, by pod",
        "cost of the costliest wait so far",
    },
}
"""The questions about which a ledger has nothing to say."""


@pytest.mark.parametrize("ledger", SCENES)
async def test_all_surfaces_answer_every_question_alike(ledger: str, tmp_path: Path) -> None:
    async with SCENES[ledger](tmp_path) as book:
        found = await compare(book, QUESTIONS)

    _report(ledger, found)
    assert [problem for each in found if (problem := _problem(each, ledger))] == []
    assert {each.question for each in found if not each.expected.amounts} == UNANSWERED[ledger]


def test_every_known_difference_is_one_of_surfaces_that_are_asked() -> None:
    asked = {(question.name, surface) for question in QUESTIONS for surface in question.surfaces}

    known = {(name, surface) for each in DIFFERENCES for name in each.questions for surface in each.surfaces}
    assert {name for name, _ in known} <= {name for name, _ in asked}
    assert {surface for _, surface in known} <= {surface for _, surface in asked}
    assert {ledger for each in DIFFERENCES for ledger in each.ledgers} <= SCENES.keys()


def _problem(each: Compared, ledger: str) -> str:
    reason = reason_of(each.question, each.surface, ledger)
    if reason and not each.differences:
        return f"{each.question}: {each.surface} agrees with {each.first} again; delete from differences.py: {reason}"
    return str(each) if each.differences and not reason else ""


def _report(ledger: str, found: list[Compared]) -> None:
    """Write what was asked as a table, for people to read."""
    head = f"{'question':<62}{'surface':<24}{'rows':>5}{'first surface':>16}{'more in all':>15}{'largest':>15}"
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    (folder / f"surfaces-{ledger}.txt").write_text("\n".join([head, *(each.line for each in found), ""]))
