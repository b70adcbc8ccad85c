"""Cascades: a pod loses its GPUs, and its replacement preempts others to get new ones."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from gputally.ledger.preemption_records import PreemptionRecord
from gputally.model.disruptions import CAUSES, Cause, DisruptionRecord

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
