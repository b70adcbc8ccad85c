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
        ("lost GPU-hours by tier and tenant", "lost cost by tier and tenant", "lost GPU-hours by job"),
        ("SQL", "preemptions", "/api/v1/preemptions"),
        ("s1", "s2", "campaign"),
        "repair due: preemptions count from the start of a pod, reports from the accounting start",
    ),
    Difference(
        ("GPU-hours lost to preemptions, by tier and tenant",),
        ("preemptions", "preemptions --by job"),
        ("s1", "s2", "campaign"),
        "repair due: preemptions count from the start of a pod, metrics from the accounting start",
    ),
    Difference(
        ("pending GPU-hours by tier, cause and occupying tier",),
        ("metrics",),
        ("s2",),
        "a tier that no pod has and nothing names is `other` in metrics until a pod of it is bound: docs/pending.md",
    ),
    Difference(
        ("GPU-hours of pods that do not exist, by tier and cause",),
        ("metrics",),
        ("waits",),
        "as for pending GPU-hours",
    ),
    Difference(
        (
            "pending GPU-hours by tier, cause and occupying tier",
            "cost of pending GPU-hours by tier, cause and occupying tier",
            "pending GPU-hours in all",
            "cost of pending GPU-hours in all",
        ),
        ("metrics",),
        ("campaign",),
        "repair due: counters of waits that ran ahead do not state their overcount",
    ),
    Difference(
        ("idle GPU-hours in all",),
        ("waterfall",),
        (*SCENARIOS, "campaign"),
        "a waterfall counts time before and after running as such, not as idle: docs/reports.md",
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
