"""Pods that wait for GPUs: the room on the nodes, and the verdict and the cause of each wait."""

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, islice, takewhile
from typing import Any, Final

from gputally.accounting.base.state_part import StatePart
from gputally.accounting.nodes.nodes import Nodes
from gputally.accounting.pods.pods import Pods
from gputally.accounting.wait_book.book import WaitBook
from gputally.accounting.waiting.blame import Blame, BlameShares, blame
from gputally.accounting.waiting.fitting import Fitting
from gputally.accounting.waiting.live_room import LiveRoom, RoomNodes
from gputally.accounting.waiting.priority_findings import RankFindings
from gputally.accounting.waiting.situations import Situations
from gputally.accounting.waiting.snapshot import PendingSums, WaitingPod
from gputally.accounting.waiting.verdicts import Verdicts
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.nodes import Node
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.kube.pods import ENDED_PHASES
from gputally.model.needs import Situation
from gputally.model.observation import ListedSeparately, OtherPod
from gputally.model.pod_record import PodRecord
from gputally.model.price import PriceRange
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND
from gputally.model.verdicts import Reason, Verdict
from gputally.model.waits import PendingHistory, PendingSegment
from gputally.placement.room import Room
from gputally.placement.verdicts import judged
from gputally.shares.request import holds_gpu
from gputally.shares.schemes import requested

_RENEW_ROUNDS: Final = 12
"""In so many rounds, all pending pods are looked at again."""
_MOST_PODS: Final = 4000
"""Pending pods that are looked at in one call."""
_STEADY_US: Final = 60 * US_PER_SECOND
"""How long a wait keeps its occupant at least, if nothing else changes and the occupant still holds GPUs."""
_AT_NODE: Final = Verdict(reason=Reason.OTHER)
"""The verdict on pods that their creator bound, and that no kubelet has accepted."""


class WaitingPods(StatePart[PendingHistory]):
    """Pending pods with GPUs, by UID, and what the nodes have for them.

    `room` has all nodes with GPUs and all pods on them. Whoever reads it must not keep or change it. It has the UIDs of
    pods; pods with GPUs among them are in `Fleet.pods.records`. Without the feature, `is_on` is False, and there are no
    verdicts.
    """

    name = "waiting"
    kinds = (Kind.PODS,)

    def __init__(
        self,
        pods: Pods,
        nodes: Nodes,
        book: WaitBook,
        rules: Rules,
        is_idle: Callable[[PodRecord], bool],
        *,
        is_resumed: bool,
    ) -> None:
        self.is_on = book.is_on
        self.live = LiveRoom(book.terms.prices.room, rules, nodes, is_resumed=is_resumed)
        self.book = book
        self.verdicts = Verdicts(self.room, judged)
        self.situations = Situations(self.live, rules, pods)
        self._rules = rules
        self._is_idle = is_idle
        self.fitting = Fitting(self.room, rules, pods=pods.records, labels_of=nodes.labels_at)
        self.findings = RankFindings(self.room, self.verdicts.classes, self._created_us)
        self.shares = BlameShares(self._held)
        self._pods = pods
        self._nodes = nodes
        self._terms = book.terms
        self._pending: set[str] = set()
        """UIDs of pods that were seen without a node and may still wait: of others, nothing about a wait is known."""
        self._unjudged: set[str] = set()
        """UIDs of pending pods that were not judged yet, or that changed."""
        self._lacks_prices = False
        """Whether the last `judge` has not asked for all prices that it could ask for."""
        self._judged_us = self._price_changes = 0
        self._turn: list[str] = []

    @property
    def room(self) -> Room:
        """What the nodes with GPUs offer, and what is taken."""
        return self.live.room

    @property
    def parts(self) -> tuple[StatePart[Any], ...]:
        """This part, after the one for nodes, and the one of sizes."""
        return RoomNodes(self.live, is_on=self.is_on), self, self.fitting.asked

    def pod(self, uid: str) -> WaitingPod | None:
        """A pending pod with its verdict as of the last `judge`; None if it does not wait."""
        record, charged = self._pods.records.get(uid), self.book.known.get(uid)
        if record is None or charged is None or not charged.waits or charged.waits[-1].to_us is not None:
            return None
        status, last = self.situations.statuses.get(uid), charged.waits[-1]
        return WaitingPod(
            record=record,
            tier=last.tier,
            tenant=last.tenant,
            quantity=requested(record.units, self._rules),
            needs=status.needs if status else None,
            situation=self.situations.of(record, self._judged_us) or Situation(),
            verdict=self._verdict(record),
            since_us=record.created_us,
            waits=charged.waits,
        )

    def node_reclassified(self, name: str) -> None:
        """What is known of that node has changed, such as what its pods hold, or what its price depends on."""
        self.live.node_reclassified(name)
        self.shares.node_changed(name)

    def pods(self) -> list[WaitingPod]:
        """All pending pods, the oldest first."""
        found = [each for each in map(self.pod, self.book.known) if each]
        return sorted(found, key=lambda each: (each.since_us, each.record.uid))

    def read(self) -> PendingSums | None:
        """Sums as of the last `judge`, and what fits now; None without the feature."""
        if not self.is_on:
            return None
        now = PendingSums(
            reasons=dict(self.book.sums),
            findings=self.findings.pods(self.book.tier_of),
            partial=self.situations.partial_gangs.read(),
            uncharged_pods=self.book.impossible,
        )
        is_known = self.live.is_judgeable and self.live.is_complete and self.fitting.is_complete
        return self.fitting.added_to(now, self.live.changed) if is_known else now

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`; comes after `Pods` has seen the pod."""
        if self.is_on and isinstance(found, PlaceablePod) and self.live.pod_seen(found):
            self.situations.nominee_seen(found)
            if found.metadata.uid in self._pods.records:
                if not found.spec.node_name:
                    self._pending.add(found.metadata.uid)
                self.situations.gpu_pod_seen(found)
                if found.status.phase in ENDED_PHASES:
                    self._waits_no_longer(found.metadata.uid)

    def other_seen(self, other: OtherPod) -> bool:
        """A pod without GPUs was observed; returns whether it matters."""
        self.situations.withdraw(other.uid)
        if other.taken is None:
            self.live.release(other.node, other.uid)
            return False
        return self.live.bind(other.node, other.uid, other.taken)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`; comes after `released`."""
        self.situations.left(uid)

    def vanished(self, record: PodRecord) -> None:
        """A pod with GPUs is missing from a list."""
        self.released(record.uid, record.node)
        self.situations.left(record.uid)

    def released(self, uid: str, node: str) -> None:
        """A pod was deleted, from `node` if it was bound: a list beside the watches may still have it."""
        if self.is_on:
            self.live.release(node, uid)

    def listing(self, kind: Kind) -> None:
        """A watch begins to list."""
        if kind is Kind.PODS:
            self.live.pods_listing()

    def listed(self, uids: Collection[str], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.listed`."""
        self.live.pods_listed(uids)
        self.situations.listed(uids)

    def listed_separately(self, part: ListedSeparately) -> None:
        """Objects were listed beside the watches, which know better about what they have reported since."""
        if part.begins:
            self.live.separate_list_begins(part.nodes)
        for each in part.objects:
            if isinstance(each, Node) and not self.live.is_newer(each.metadata.uid):
                self.live.node_seen(each, at_us=part.at_us)
            elif isinstance(each, PlaceablePod) and self._is_current(each):
                self.seen(each, at_us=part.at_us)
        self.situations.read()  # most of its pods still wait: kept until the next `judge`, they take far more
        if part.ends:
            self.live.separate_list_ends(had_all=not part.nodes)

    def pod_changed(self, record: PodRecord, *, at_us: int, is_gone: bool = False) -> None:
        """Update from a changed or deleted pod with GPUs. `WaitBook.bound` has ended the wait of a bound one."""
        if not self.is_on and record.uid not in self.book.known:
            return
        self.fitting.packing.pod_changed(record, is_gone=is_gone)
        self.fitting.asked.pod_changed(record, at_us=at_us)
        self.shares.node_changed(record.node)
        if record.scheduled_us is not None or record.end_us is not None or is_gone:
            self._waits_no_longer(record.uid)
        if record.scheduled_us is None and record.end_us is not None:
            tenant = self._pods.namespaces.tenant(record)
            self.book.finish(record, tenant, end_us=record.end_us, at_us=at_us)
        elif self.is_on and record.scheduled_us is None and not is_gone:
            self._pending.add(record.uid)
            self._unjudged.add(record.uid)
        if is_gone:
            self.book.forget(record.uid)

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        self.live.advance(now_us)
        self.situations.advance()
        self._turn = self._turn or list(self.situations.statuses)
        count = len(self.situations.statuses) // _RENEW_ROUNDS + 1
        turn = self._turn[-count:]
        self._unjudged.update(turn)  # pods that hold GPUs may have become idle
        del self._turn[-count:]
        pending = (each for uid in turn if (each := self._pods.records.get(uid)) and _is_unbound(each))
        self.fitting.asked.pods_wait(pending, self._nodes.models(), at_us=now_us)
        self.findings.step()

    def judge(self, *, at_us: int) -> None:
        """Renew the verdicts that changes since the last call may have changed, and charge the waits since then."""
        if self.is_on:
            self._judge(at_us)
        self.book.post()

    @property
    def is_behind(self) -> bool:
        """Whether `judge` has left some pods for the next call."""
        is_behind = bool(self._unjudged) or self.verdicts.is_behind or self.fitting.is_behind or self._lacks_prices
        return self.live.is_judgeable and is_behind

    def drain(self) -> dict[str, PendingHistory | None]:
        """See `StatePart.drain`."""
        return self.book.drain()

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        self.book.touch_all()

    def restore(self, documents: Iterable[PendingHistory], *, at_us: int) -> None:
        """See `StatePart.restore`; comes before the pods."""
        self.book.restore(documents, at_us=at_us)

    def pods_restored(self, *, at_us: int) -> None:
        """All pods are restored. Waits of pods that are gone or bound end, and all of them without the feature."""
        records = self._pods.records
        for uid in tuple(self.book.known):
            is_over = uid not in records or records[uid].scheduled_us is not None
            if is_over or not self.is_on:
                self.book.end(uid, at_us=at_us)
            if is_over:
                self.book.forget(uid)
            elif self.is_on:
                self._pending.add(uid)
                self._restore_share(uid)
        for record in records.values() if self.is_on else ():
            if record.node and record.end_by is None:
                self.live.restored(record)
                self.fitting.packing.pod_changed(record, is_gone=False)
            elif record.scheduled_us is None and record.end_by is None:
                self._pending.add(record.uid)
                self._unjudged.add(record.uid)

    def _judge(self, at_us: int) -> None:
        self._judged_us = at_us
        self.situations.read()
        self._unjudged |= self.situations.changed
        self.situations.changed.clear()
        if self._price_changes != (changes := self._terms.prices.renew()):
            self._price_changes = changes
            self._unjudged.update(self.situations.statuses)
        changed = set(islice(self._unjudged, _MOST_PODS))
        if self.live.is_judgeable:
            self._unjudged -= changed
            for uid in changed:
                self._classify(uid, at_us)
            changed.update(self._renewed())
            self.fitting.step()
        waits = dict(self._waits(chain(self._unpriced(), changed), at_us))
        self._lacks_prices = bool(self.book.unpriced) and not self._terms.prices.can_check_nodes
        for uid in self.shares.recompute() - waits.keys():
            if (known := self.book.known.get(uid)) and known.waits and known.waits[-1].to_us is None:
                waits[uid] = known.waits[-1]
        for uid, wait in waits.items():
            occupant, quantity, holders = self.shares.occupant_share(uid)
            charged = self._terms.charged_to(wait, occupant, quantity)
            self.book.charge(self._pods.records[uid], charged, holders=holders, at_us=at_us)

    def _is_current(self, pod: PlaceablePod) -> bool:
        """Whether no watch knows better: one that lacks a pod with GPUs saw its deletion, or will report it."""
        uid = pod.metadata.uid
        return not self.live.is_newer(uid) and (uid in self._pods.records or not holds_gpu(pod, self._rules))

    def _created_us(self, uid: str) -> int:
        record = self._pods.records.get(uid)
        return record.created_us if record else self._judged_us

    def _waits_no_longer(self, uid: str) -> None:
        if uid not in self._pending:
            return
        self._pending.remove(uid)
        self._unjudged.discard(uid)
        self.verdicts.drop(uid)
        self.shares.drop(uid)
        self.situations.waits_no_longer(uid)

    def _classify(self, uid: str, at_us: int) -> None:
        record, status = self._pods.records.get(uid), self.situations.statuses.get(uid)
        situation = self.situations.of(record, at_us) if record and _is_unbound(record) else None
        if status and situation:
            self.verdicts.put(uid, status.needs, situation)
        else:
            self.verdicts.drop(uid)

    def _renewed(self) -> Iterable[str]:
        """Pods with another verdict, as the room is now."""
        is_same = self.room.is_complete is self.live.is_complete and not self.live.places_changed
        self.room.is_complete, self.live.places_changed = self.live.is_complete, False
        changed, self.live.changed = self.live.changed, set()
        self.fitting.invalidate(changed)
        return self.verdicts.renew(changed if is_same else None)

    def _verdict(self, record: PodRecord) -> Verdict:
        return _AT_NODE if record.node else self.verdicts.verdict(record.uid)

    def _waits(self, uids: Iterable[str], at_us: int) -> Iterator[tuple[str, PendingSegment]]:
        """What pods wait for, without who is charged for it; that is for the shares to say."""
        blames: dict[tuple[int, int], Blame] = {}
        for uid in uids:
            record = self._pods.records.get(uid)
            waits = record and record.scheduled_us is None and record.end_us is None
            if record and waits and (wait := self._wait(record, blames, at_us=at_us)):
                yield uid, wait

    def _wait(self, record: PodRecord, blames: dict[tuple[int, int], Blame], *, at_us: int) -> PendingSegment | None:
        """None if the last known reason counts until there is another.

        `blames` has what was found out for other pods with the same verdict (by its `id`) and priority.
        """
        verdict, uid, known = self._verdict(record), record.uid, self.book.known.get(record.uid)
        last = known.waits[-1] if known and known.waits and known.waits[-1].to_us is None else None
        if verdict.reason is Reason.UNKNOWN and last:
            return None
        tenant, prices = self._pods.namespaces.tenant(record), self._prices(record, last)
        alike = id(verdict), record.priority or 0
        if (to := blames.get(alike)) is None:
            to = blames[alike] = blame(verdict, alike[1], self._pods.records, is_idle=self._is_idle)
        wait = self._terms.wait_of(record, tenant, prices, reason=verdict.reason, cause=to.cause)
        if not (last and known and self._keeps_occupant(known, wait, to, at_us=at_us)):
            self.shares.put(uid, to, created_us=record.created_us, quantity=wait.quantity)
        return wait

    def _unpriced(self) -> Iterator[str]:
        """Pods of which the prices are not found out yet, as many as may be asked for."""
        for uid in tuple(self.book.unpriced):
            if not self._terms.prices.can_check_nodes:
                return
            yield uid

    def _prices(self, record: PodRecord, last: PendingSegment | None) -> PriceRange | None:
        """What a pod waits for; as long as that is not found out, as last charged, and None if it never was."""
        uid, status = record.uid, self.situations.statuses.get(record.uid)
        found = self._terms.prices_of(record, status.needs) if status else None
        if found is not None:
            self.book.unpriced.pop(uid, None)
            return found
        if status:
            self.book.unpriced[uid] = status.needs
        return None if last is None or last.awaits_price else last.prices

    def _keeps_occupant(self, known: PendingHistory, wait: PendingSegment, to: Blame, *, at_us: int) -> bool:
        """Whether the wait is charged to another occupant only later: pods that take turns would change all waits."""
        last, uid = known.waits[-1], known.uid
        is_same = (last.reason, last.cause, last.quantity) == (wait.reason, wait.cause, wait.quantity)
        is_other = last.occupant is not None and to.occupant not in (None, last.occupant)
        if not (is_same and is_other and self.shares.is_held(uid)):
            return False
        by_same = takewhile(lambda each: each.occupant == last.occupant, reversed(known.waits))
        return at_us < min(each.from_us for each in by_same) + _STEADY_US

    def _held(self, uid: str) -> int:
        """How many µGPU a pod holds now."""
        record = self._pods.records.get(uid)
        if record is None or record.end_by is not None:
            return 0
        return sum(each.quantity for each in record.segments if each.end_us is None)

    def _restore_share(self, uid: str) -> None:
        """Charge a wait to the pods to which an earlier process has charged it, as far as they still hold anything."""
        known, record = self.book.known[uid], self._pods.records[uid]
        last = known.waits[-1] if known.waits else None
        if last is None or last.occupant is None:
            return
        holder = next(filter(None, map(self._pods.records.get, known.holders)), None)
        to = Blame(last.cause, last.occupant, holder.node, known.holders) if holder else Blame(last.cause)
        quantities = {"quantity": last.quantity, "charged": last.by_occupant}
        self.shares.restore(uid, to, created_us=record.created_us, **quantities)


def _is_unbound(record: PodRecord) -> bool:
    """Whether a pod is yet to be bound, which one that has ended never is: its object may change all the same."""
    return not record.node and record.scheduled_us is None and record.end_us is None
