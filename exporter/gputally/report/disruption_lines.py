"""Pods that lost their GPUs involuntarily, each with its preemptor if the scheduler made room."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from gputally.ledger.preemption_records import PreemptionRecord
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.disruptions import Cause, DisruptionRecord
from gputally.model.lost_work import LostWork
from gputally.model.units import US_PER_HOUR
from gputally.report.preemptions.cascades import LINKED, CascadeLink, cascade_links
from gputally.report.preemptions.preemption_value import PreemptionValue, read_values
from gputally.report.report_query import ReportQuery

FILTERED: Final = ("tier", "tenant", "namespace", "pod", "job_kind", "job", "node")
"""The columns that a filter can name: those of the victim."""


class DisruptionLine(Struct, frozen=True):
    """A disruption, and of a preemption, how it was counted, what it destroyed and what it bought, as far as read.

    If it is in a `cascade`, which others of it precede it.
    """

    disruption: DisruptionRecord
    preemption: PreemptionRecord | None
    lost: LostWork | None
    value: PreemptionValue | None = None
    cascade: CascadeLink | None = None


def read_disruptions(
    reader: LedgerReader, query: ReportQuery, causes: Collection[Cause], *, until_us: int | None = None
) -> Iterator[DisruptionLine]:
    """Those decided in the window, in the order of time, that match all filters. Raises: LedgerError.

    Their values count up to `until_us`, by default the end of the ledger.
    """
    window = query.window
    wide = Window(window.start_us - US_PER_HOUR, window.end_us + US_PER_HOUR)  # links reach an hour beyond it
    every, known = list(reader.disruptions(wide, causes=LINKED | set(causes))), list(reader.preemptions(wide))
    links = cascade_links(every, {each.victim_uid: each for each in known})
    found = [each for each in every if window.start_us <= each.decided_us < window.end_us]
    preemptions = {each.victim_uid: each for each in known if window.start_us <= each.decided_us < window.end_us}
    lost = reader.lost_work(window, causes=causes)
    values = read_values(reader, found, preemptions, until_us=until_us)
    for each in found:
        if each.cause in causes and query.includes(victim_values(each)):
            uid = each.victim_uid
            yield DisruptionLine(each, preemptions.get(uid), lost.get(uid), values.get(uid), links.get(uid))


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
