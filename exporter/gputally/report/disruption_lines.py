"""Pods that lost their GPUs involuntarily, each with its preemptor if the scheduler made room."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import DisruptionRecord, PreemptionRecord
from gputally.model.disruptions.disruption import Cause
from gputally.model.work.lost_work import LostWork
from gputally.report.report_query import ReportQuery

FILTERED: Final = ("tier", "tenant", "namespace", "pod", "job_kind", "job", "node")
"""The columns that a filter can name: those of the victim."""


class DisruptionLine(Struct, frozen=True):
    """A disruption, with the preemption as it was counted and the work that it destroyed; None for other causes."""

    disruption: DisruptionRecord
    preemption: PreemptionRecord | None
    lost: LostWork | None


def read_disruptions(reader: LedgerReader, query: ReportQuery, causes: Collection[Cause]) -> Iterator[DisruptionLine]:
    """Those decided in the window, in the order of time, that match all filters. Raises: LedgerError."""
    preemptions = {each.victim_uid: each for each in reader.preemptions(query.window)}
    lost = reader.lost_work(query.window)
    for each in reader.disruptions(query.window):
        if each.cause in causes and query.includes(victim_values(each)):
            yield DisruptionLine(each, preemptions.get(each.victim_uid), lost.get(each.victim_uid))


def victim_values(each: DisruptionRecord) -> Mapping[str, str]:
    """The columns that a filter can name."""
    return {
        "tier": each.victim_tier,
        "tenant": each.victim_tenant,
        "namespace": each.victim_namespace,
        "pod": each.victim_name,
        "job_kind": each.job_kind,
        "job": each.job,
        "node": each.node,
    }
