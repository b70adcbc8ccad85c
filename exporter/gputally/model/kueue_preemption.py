"""Which workload Kueue preempted another one for, as it writes that into the conditions of the victim."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from gputally.model.disruptions import QueuePreemptor


class QueueRule(StrEnum):
    """Why a queue may preempt one workload for another, by the reasons of Kueue's condition `Preempted`."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    IN_COHORT_RECLAMATION = "InCohortReclamation"
    IN_COHORT_FAIR_SHARING = "InCohortFairSharing"
    IN_COHORT_RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


_UID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TEXT: Final = re.compile(
    rf"Preempted to accommodate a workload \(UID: (?P<uid>{_UID})"
    rf"(?:, JobUID: (?:(?P<job>{_UID})|[^\s,()]{{1,128}}))?\) "
    r"due to (?P<words>[A-Za-z ]{1,100})(?:;|$)"
)
"""Reads a bounded number of characters, however long the message is."""
RULE_WORDS: Final[Mapping[str, str]] = {
    QueueRule.IN_CLUSTER_QUEUE: "prioritization in the ClusterQueue",
    QueueRule.IN_COHORT_RECLAMATION: "reclamation within the cohort",
    QueueRule.IN_COHORT_FAIR_SHARING: "Fair Sharing within the cohort",
    QueueRule.IN_COHORT_RECLAIM_WHILE_BORROWING: "reclamation within the cohort while borrowing",
}
"""What Kueue calls its rules in messages."""
_RULES: Final = {words: rule for rule, words in RULE_WORDS.items()}


def queue_preemptor_in(message: str | None) -> QueuePreemptor:
    """Whom the message names; nobody if it has another form.

    Older versions name no job and no paths. Source: kueue pkg/scheduler/preemption/preemption.go, preemptionMessage.
    """
    found = _TEXT.match(message or "")
    if found is None:
        return QueuePreemptor()
    return QueuePreemptor(found["uid"], _RULES.get(found["words"], ""), found["job"] or "")
