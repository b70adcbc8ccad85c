"""The differences between surfaces that are known, each with its reason.

An entry is strict: where the surfaces agree again, the test fails until it is deleted.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

SCENARIOS: Final = ("s1", "s2", "waits")


class Difference(NamedTuple):
    """These surfaces answer these questions in another way than the first surface, on these ledgers."""

    questions: Collection[str]
    surfaces: Collection[str]
    ledgers: Collection[str]
    reason: str


DIFFERENCES: Final = (
    Difference(
        ("pending GPU-hours by tier, cause and occupying tier",),
        ("metrics",),
        ("s2",),
        "a tier that no pod has and nothing names is `other` in metrics until a pod of it is bound: docs/pending.md",
    ),
    Difference(
        (
            "GPU-hours of pods that do not exist, by tier and cause",
            "pods that do not exist now, by tier and reason",
            "GPUs of pods that do not exist now, by tier and reason",
        ),
        ("metrics",),
        ("waits",),
        "as for pending GPU-hours",
    ),
    Difference(
        ("idle GPU-hours in all",),
        ("waterfall",),
        (*SCENARIOS, "campaign"),
        "a waterfall counts time before and after running as such, not as idle: docs/reports.md",
    ),
    Difference(
        ("GPUs that pods wait for, by GPU model",),
        ("metrics",),
        ("waits",),
        "a model that no node has is `other` in metrics, and names are in full elsewhere: docs/top.md",
    ),
    Difference(
        ("seconds that pods have waited",),
        ("SQL",),
        (*SCENARIOS, "campaign"),
        "the ledger has waits from the accounting start on, the others the creation of the pods: docs/pending.md",
    ),
)


def reason_of(question: str, surface: str, ledger: str) -> str:
    """Why the surface may differ there; empty if it must not."""
    found = (
        each.reason
        for each in DIFFERENCES
        if question in each.questions and surface in each.surfaces and ledger in each.ledgers
    )
    return next(found, "")
