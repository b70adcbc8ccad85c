"""Pods that lost their GPUs involuntarily, each with its preemptor and the cascade that it is part of."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from gputally.ledger.preemption_records import PreemptionRecord
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.disruptions import CAUSES, Cause, DisruptionRecord
from gputally.model.lost_work import LostWork
from gputally.model.units import US_PER_HOUR
from gputally.reports.preemption_value import PreemptionValue, read_values
from gputally.reports.query import ReportQuery

LINKED: Final = CAUSES - {Cause.DELETION, Cause.CONTAINER_RESTART}
"""Causes for which a pod needs new GPUs."""


class CascadeLink(NamedTuple):
    """The disruption that one `follows` in a cascade, None for the `first`, which both are UIDs of victims."""

    follows: str | None
    first: str


def cascade_links(
    disruptions: Iterable[DisruptionRecord], preemptions: Mapping[str, PreemptionRecord]
) -> dict[str, CascadeLink]:
    """The links of those in a cascade, by UID of the victim.

    A preemption follows the disruption whose victim was replaced by the pod that it made room for.
    """
    by_uid = {each.victim_uid: each for each in disruptions if each.cause in LINKED}
    replaced = {each.replacement_uid: uid for uid, each in by_uid.items() if each.replacement_uid}
    follows = dict(_follows(by_uid, replaced, preemptions))
    uids = {*follows, *follows.values()}
    return {uid: CascadeLink(follows.get(uid), _first(uid, follows)) for uid in uids}


def _first(uid: str, follows: Mapping[str, str]) -> str:
    seen = {uid}
    while (before := follows.get(uid)) and before not in seen:  # times have whole seconds, so there may be circles
        seen.add(before)
        uid = before
    return uid


def _follows(
    by_uid: Mapping[str, DisruptionRecord], replaced: Mapping[str, str], preemptions: Mapping[str, PreemptionRecord]
) -> Iterator[tuple[str, str]]:
    """Each preemption, and the one that it follows: the latest, if a queue made room for several replacements."""
    for uid, each in by_uid.items():
        takers = preemptions[uid].takers if uid in preemptions else None
        earlier = [replaced[taker] for taker in takers or () if taker in replaced]
        earlier = [before for before in earlier if by_uid[before].decided_us <= each.decided_us and before != uid]
        if earlier:
            yield uid, max(earlier, key=lambda before: (by_uid[before].decided_us, before))


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
    """The disruptions decided in the window, in the order of time, that match all filters. Raises: LedgerError.

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
