"""Nodes that re-register under another UID: the kubelet recreates a deleted Node while its pods keep running.

The system UUID identifies the machine: the next incarnation of a name with the same system UUID continues the previous
one, and so do the allocations on it. A node without a system UUID never continues another. Each incarnation accounts
for the time until the next was created.

Source: k8s.io/kubernetes pkg/kubelet/kubelet_node_status.go, registerWithAPIServer; PodGC leaves pods alone while a
Node of that name exists.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from gputally.accounting.facts.node_history import chained, classes
from gputally.accounting.facts.release import NodeLife, PodNode
from gputally.accounting.nodes.capacity_account import NodeAccount
from gputally.model.allocation import Segment
from gputally.model.node_record import NodeRecord, Span
from gputally.model.units import US_PER_SECOND

Share = tuple[NodeAccount, Iterable[Segment], Iterable[Segment]]


class Lineage:
    """Which incarnation continues which; a view of all `accounts`, and of their UIDs `by_name` in creation order."""

    def __init__(self, accounts: Mapping[str, NodeAccount], by_name: Mapping[str, Sequence[str]]) -> None:
        self._accounts = accounts
        self._by_name = by_name
        self._next: dict[str, str] = {}

    def linked(self, record: NodeRecord) -> NodeRecord:
        """`record` with the incarnation that it continues, if any; allocations then move from that one to this one."""
        before = None if record.continues else self.continued(record)
        if before is None:
            return record
        self._next[before.uid] = record.uid
        self._accounts[before.uid].hand_over(self._accounts[record.uid], from_us=record.created_us)
        return replace(record, continues=before.uid)

    def restored(self, record: NodeRecord) -> None:
        """Restore the link that an earlier process stored."""
        if record.continues:
            self._next[record.continues] = record.uid

    def closed(self, record: NodeRecord) -> None:
        """Remove a forgotten incarnation and its links in both directions."""
        self._next.pop(record.uid, None)
        if self._next.get(record.continues) == record.uid:
            del self._next[record.continues]

    def at(self, name: str, at_us: int) -> NodeAccount | None:
        """The last incarnation of the name that was created before that time and may have existed then.

        Without one, the next that was created less than a second later: the API states whole seconds, of which an
        observation by a slower clock may cut off a part, so within a second their order is not known.
        """
        uids = self._by_name.get(name, ())
        for uid in reversed(uids):
            account = self._accounts[uid]
            if may_have_existed(account.record, at_us):
                return account
        accounts = (self._accounts[uid] for uid in uids)
        soon = (each for each in accounts if at_us < each.record.created_us < at_us + US_PER_SECOND)
        return next(soon, None)

    def of(self, uid: str) -> list[NodeAccount]:
        """The incarnation and all that continue it."""
        found = [self._accounts[uid]]
        while (uid := self._next.get(uid, "")) in self._accounts:
            found.append(self._accounts[uid])
        return found

    def pod_node_of(self, uid: str) -> PodNode:
        """The `PodNode` of pods on the incarnation, including all that continue it."""
        first = self._accounts[uid]
        if uid not in self._next:  # nearly all
            return first.pod_node
        records = [account.record for account in self.of(uid)]
        return first.pod_node._replace(history=classes(chained(records)), life=_life_of(records))

    def shares(self, uid: str, before: Iterable[Segment], after: Iterable[Segment]) -> Iterable[Share]:
        """Split the change between two states of a pod by the incarnations that it was on."""
        if uid not in self._next:  # nearly all
            return ((self._accounts[uid], before, after),)
        return self._shares(self.of(uid), before, after)

    def _shares(
        self, accounts: Sequence[NodeAccount], before: Iterable[Segment], after: Iterable[Segment]
    ) -> Iterator[Share]:
        before, after = tuple(before), tuple(after)
        births = [0, *(account.record.created_us for account in accounts[1:])]
        for account, from_us, until_us in zip(accounts, births, (*births[1:], None), strict=True):
            yield account, _within(before, from_us, until_us), _within(after, from_us, until_us)

    def before(self, record: NodeRecord) -> NodeRecord | None:
        """The previous incarnation of the name."""
        named = (self._accounts[uid].record for uid in self._by_name.get(record.name, ()))
        earlier = [each for each in named if each.created_us < record.created_us]
        return earlier[-1] if earlier else None

    def continued(self, record: NodeRecord) -> NodeRecord | None:
        """The previous incarnation, if it is the same machine."""
        before = self.before(record)
        return before if before and record.machine and before.machine == record.machine else None

    def replaced_us(self, record: NodeRecord) -> int | None:
        """The creation time of the next incarnation of the name, by which the previous one was gone."""
        births = (self._accounts[uid].record.created_us for uid in self._by_name.get(record.name, ()))
        return min((birth_us for birth_us in births if birth_us > record.created_us), default=None)


def _life_of(records: Sequence[NodeRecord]) -> NodeLife:
    unready: list[Span] = []
    for node, following in pairwise(records):
        born_us = following.created_us
        unready += [(from_us, born_us if to_us is None else to_us) for from_us, to_us in node.unready]
        if node.gone_us is not None:
            unready.append((node.gone_us, born_us))
    last = records[-1]
    return NodeLife(last.gone_us, last.gone_by_us, (*unready, *last.unready))


def _within(segments: Iterable[Segment], from_us: int, until_us: int | None) -> list[Segment]:
    """The parts of `segments` in [from_us, until_us)."""
    found = []
    for each in segments:
        start_us = max(each.start_us, from_us)
        ends = [end for end in (each.end_us, until_us) if end is not None]
        end_us = min(ends) if ends else None
        if end_us is None or start_us < end_us:
            found.append(replace(each, start_us=start_us, end_us=end_us))
    return found


def may_have_existed(record: NodeRecord, at_us: int) -> bool:
    """Whether the node may have existed at that time; its end may be uncertain."""
    if record.gone_us is None:
        return record.created_us <= at_us
    return record.created_us <= at_us < max(record.gone_us, record.gone_by_us or 0)


def noticed_us(record: NodeRecord, now_us: int) -> int:
    """When its deletion was observed; now, if it exists."""
    return now_us if record.gone_us is None else max(record.gone_us, record.gone_by_us or 0)
