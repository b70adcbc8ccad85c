"""The nodes of the fleet by incarnation, with their accounts."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from gputally.accounting.facts.gpu_model import ModelNames
from gputally.accounting.facts.node_history import Reclassified, as_one, reclassified_us
from gputally.accounting.facts.release import NodeLife, PodNode
from gputally.accounting.nodes.capacity import CapacityTerms
from gputally.accounting.nodes.capacity_account import NodeAccount
from gputally.accounting.nodes.facts import (
    NO_FACTS,
    ended,
    is_stand_in,
    lapsed,
    learned,
    machine_of,
    observed,
    stand_in,
)
from gputally.accounting.nodes.inventory import Inventory, inventory_of
from gputally.accounting.nodes.labels import Lapses, first_seen, inherited, is_described, lapses_before
from gputally.accounting.nodes.lineage import Lineage, noticed_us
from gputally.accounting.nodes.most_capacity import MostCapacity
from gputally.accounting.prices.pricing import AssetPrices, Pricing
from gputally.accounting.terms.classify import on_node
from gputally.accounting.totals.label_limiter import LabelLimiter
from gputally.accounting.totals.totals import Totals
from gputally.model.allocation import Segment
from gputally.model.history import alike
from gputally.model.kube.nodes import Node
from gputally.model.node_record import LabelConflict, NodeFacts, NodeRecord
from gputally.model.pod_record import PodRecord
from gputally.model.price import Asset, Purchase
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, dated_us

_KEEP_US = US_PER_HOUR
"""How long the account of a deleted node accepts late events of its pods."""


class Nodes:
    """Accounts by node UID. A pod's node is the incarnation that existed when the pod was bound."""

    def __init__(self, rules: Rules, pricing: Pricing, totals: Totals, limiter: LabelLimiter) -> None:
        self.accounts: dict[str, NodeAccount] = {}
        self._rules = rules
        self._pricing = pricing
        self._totals = totals
        self._limiter = limiter
        self._by_name: dict[str, list[str]] = {}
        self.lineage = Lineage(self.accounts, self._by_name)
        self._changed: set[str] = set()
        self._learned: dict[tuple[str, int], tuple[str, NodeFacts]] = {}
        self.asset_prices = AssetPrices(pricing, since_us=totals.accounting_start_us)
        self._inventory: Inventory | None = None
        self._models = ModelNames()
        self._stale: set[str] = set()
        """Nodes whose capacity must be recomputed."""
        self._finalized_us = totals.accounting_start_us
        """An earlier process accounted the capacity before this time."""
        self.lapses = Lapses()
        self.most = MostCapacity(rules)
        self.label_conflicts: dict[str, LabelConflict] = {}
        """How the GPU labels of existing nodes contradict their units, by UID."""
        self._new_conflicts: dict[str, LabelConflict] = {}

    def known(self) -> set[str]:
        """UIDs of the existing nodes."""
        return {uid for uid, a in self.accounts.items() if a.record.gone_us is None and not is_stand_in(uid)}

    def has(self, name: str) -> bool:
        """Whether a node of that name exists or was deleted recently."""
        return name in self._by_name

    def is_spot(self, uid: str) -> bool:
        """Whether a node is a spot machine, which its cloud may take back."""
        facts = self.accounts[uid].record.facts if uid in self.accounts else ()
        return bool(facts) and facts[-1][1].asset.purchase is Purchase.SPOT

    def seen(self, node: Node, *, at_us: int, since_us: int) -> list[Reclassified]:
        """Update from a Node, also from one without GPUs: its device plugin may register later.

        Returns: which pods of it, and of the previous incarnation, must be reclassified.
        """
        account = self.accounts.get(node.metadata.uid)
        if account is not None and account.record.gone_us is not None:
            return []  # a late event of a deleted node
        before = account.record if account else self._born(node, at_us)
        keys = self._pricing.label_keys
        continued = None if account else self.lineage.continued(before)
        record = observed(
            before,
            node,
            rules=self._rules,
            price_labels=keys,
            at_us=at_us,
            since_us=since_us,
            continued=continued.facts[-1][1] if continued else None,
        )
        replaced = None
        if account is None:
            account = self._open(before)
            replaced = self._replaced(before)
        record = self.lineage.linked(record)
        if record.continues in self.accounts:
            self._stale.add(record.continues)  # its allocations moved on, and its deletion may be observed much later
        changed = as_one([*self._taught(record), self._renewed(account, record)])
        return [each for each in (replaced, changed) if each]

    def _born(self, node: Node, at_us: int) -> NodeRecord:
        """A new incarnation, with the labels of the one that it continues."""
        meta = node.metadata
        created_us = dated_us(meta.creation_timestamp, at_us)
        record = NodeRecord(uid=meta.uid, name=meta.name, created_us=created_us, machine=machine_of(node))
        before = self.lineage.continued(record)
        return replace(record, lost=inherited(before, born_us=created_us)) if before else record

    def _taught(self, record: NodeRecord) -> Iterator[Reclassified | None]:
        """Apply newly reported labels also to the incarnations that this one continues: the machine is the same.

        Labels that an earlier incarnation had lost may still expire before the next one was created.
        """
        present, keys = dict(record.facts[-1][1].labels), self._pricing.label_keys
        while record.continues in self.accounts:
            account, born_us = self.accounts[record.continues], record.created_us
            record, first = account.record, first_seen(account.record, present)
            better = learned(record, first, rules=self._rules, price_labels=keys)
            yield self._renewed(account, lapsed(better, rules=self._rules, price_labels=keys, at_us=born_us))

    def lapse(self, upto_us: int) -> list[Reclassified]:
        """Let missing labels expire; all events up to that time are known.

        Returns: which pods must be reclassified.
        """
        accounts, keys = [self.accounts[uid] for uid in self.lapses.due(upto_us)], self._pricing.label_keys
        records = [lapsed(each.record, rules=self._rules, price_labels=keys, at_us=upto_us) for each in accounts]
        return [each for each in map(self._renewed, accounts, records) if each]

    def are_labels_final(self, record: PodRecord) -> bool:
        """Whether labels of its node can no longer change an ended pod; true for an unknown node."""
        if record.node_uid not in self.accounts or is_stand_in(record.node_uid):
            return True
        if not is_described(self.accounts[record.node_uid].record):
            return False
        for account in self.lineage.of(record.node_uid):
            if account.record.lost and lapses_before(account.record, record.end_us or 0):
                return False
        return True

    def gone(self, uid: str, *, at_us: int, since_us: int) -> Reclassified | None:
        """The node was deleted within [since_us, at_us], and before another of its name was created.

        Returns: which of its pods must be reclassified, if any.
        """
        account = self.accounts.get(uid)
        if account is None or account.record.gone_us is not None:
            return None
        by_us = min(at_us, self.lineage.replaced_us(account.record) or at_us)
        gone_us = max(min(since_us, by_us), account.record.created_us)
        return self._ended(account, gone_us=gone_us, by_us=by_us) or Reclassified(uid, account.record.name, gone_us)

    def _replaced(self, record: NodeRecord) -> Reclassified | None:
        """End the previous incarnation by the creation of this one, whenever its deletion is observed."""
        before = self.lineage.before(record)
        if before is None or before.gone_us is None:
            return None
        gone_us, by_us = (min(at_us or 0, record.created_us) for at_us in (before.gone_us, before.gone_by_us))
        return self._ended(self.accounts[before.uid], gone_us=gone_us, by_us=by_us)

    def _ended(self, account: NodeAccount, *, gone_us: int, by_us: int) -> Reclassified | None:
        following = self.lineage.of(account.record.uid)[1:]
        until_us = following[0].record.created_us if following else gone_us
        record = ended(account.record, rules=self._rules, price_labels=self._pricing.label_keys, at_us=until_us)
        return self._renewed(account, replace(record, gone_us=gone_us, gone_by_us=by_us))

    def of_pod(self, record: PodRecord) -> NodeAccount:
        """The account of the incarnation that a bound pod belongs to; a stand-in without GPUs if unknown."""
        if account := self.lineage.at(record.node, record.scheduled_us or 0):
            return account
        return self._stand_in(record.node)

    def _stand_in(self, name: str) -> NodeAccount:
        record = stand_in(name)
        if record.uid not in self.accounts:
            self.accounts[record.uid] = NodeAccount(record, self._totals, since_us=self._finalized_us)
        return self.accounts[record.uid]

    def pod_node_of(self, record: PodRecord) -> PodNode:
        """The `PodNode` of a bound pod."""
        if account := self.lineage.at(record.node, record.scheduled_us or 0):
            return self.lineage.pod_node_of(account.record.uid)
        return self._stand_in(record.node).pod_node._replace(life=self._stand_in_life(record))

    def reclassified(self, record: PodRecord, changed: Reclassified) -> PodRecord:
        """A pod with its node's present facts; unchanged if its node is another one by now, or forgotten."""
        if record.node_uid not in self.accounts:
            return record
        if changed.uid not in {account.record.uid for account in self.lineage.of(record.node_uid)}:
            return record
        history = self.lineage.pod_node_of(record.node_uid).history
        since_us = max(changed.since_us, history[0][0])
        return on_node(record, history, self._rules, since_us=since_us, limit=self._limiter.limit_pod)

    def _stand_in_life(self, record: PodRecord) -> NodeLife:
        """A later incarnation ends pods that were bound to an unknown earlier one."""
        births = (self.accounts[uid].record.created_us for uid in self._by_name.get(record.node, ()))
        birth_us = min((birth for birth in births if birth > (record.scheduled_us or 0)), default=None)
        return NodeLife(gone_us=birth_us, gone_by_us=birth_us)

    def labels_at(self, name: str) -> tuple[str, str]:
        """The exported (gpu_model, pool) of the latest node called `name`."""
        uids = self._by_name.get(name)
        return self.labels_of(self.accounts[uids[-1]].record.facts[-1][1] if uids else NO_FACTS)

    def models(self) -> Mapping[str, str]:
        """The model of the nodes that have a value in a label of GPU models; "" if they have several models.

        A value that is the model of some nodes stands for these.
        """
        return self._models.read()

    def asset_at(self, name: str) -> Asset | None:
        """What the price of the latest node called `name` depends on; None if it is unknown."""
        uids = self._by_name.get(name)
        facts = self.accounts[uids[-1]].record.facts if uids else ()
        return facts[-1][1].asset if facts else None

    def most_physical(self, name: str) -> int:
        """The maximum µGPU of the latest node called `name` in its stored history; 0 if it is unknown."""
        uids = self._by_name.get(name)
        return max((facts.physical for _, facts in self.accounts[uids[-1]].record.facts), default=0) if uids else 0

    def hold(self, uid: str, before: Iterable[Segment], after: Iterable[Segment], *, at_us: int) -> None:
        """Replace the former segments of a pod on the node by its present ones."""
        for account, old, new in self.lineage.shares(uid, before, after):
            if account.hold(old, new, at_us=at_us):
                self._stale.add(account.record.uid)

    def taken_up(self, record: PodRecord) -> PodRecord:
        """A restored pod on its node, with its posted allocation."""
        if is_stand_in(record.node_uid):
            self._stand_in(record.node)  # also if its node is known by now: its terms are not those of the node
        elif record.node_uid != (uid := self.of_pod(record).record.uid):
            record = replace(record, node_uid=uid)
        for account, _, held in self.lineage.shares(record.node_uid, (), record.segments):
            account.take_up((), held)
        return record

    def catch_up(self, *, at_us: int) -> None:
        """Recompute the capacity of all changed nodes; deferred until it is read.

        Between two reads, a node with many pods changes many times.
        """
        terms = CapacityTerms(self._pricing.of_capacity, self._pricing.changes, self.labels_of)
        for uid in self._stale:
            self.accounts[uid].rebuild(terms, at_us=at_us)
        self._stale.clear()

    def invalidate_all(self, *, since_us: int) -> None:
        """Recompute the capacity of all nodes, after a change of prices from `since_us` on."""
        for account in self.accounts.values():
            account.invalidate(since_us)
        self._stale.update(self.accounts)
        self._inventory = None

    def forget_gone(self, now_us: int, in_use: Callable[[], set[str]]) -> None:
        """Drop the accounts of long deleted nodes, and stand-ins, unless an existing pod is on them."""
        self.catch_up(at_us=now_us)
        records = [account.record for account in self.accounts.values()]
        ended = [r for r in records if is_stand_in(r.uid) or noticed_us(r, now_us) < now_us - _KEEP_US]
        used = {account.record.uid for uid in in_use() for account in self.lineage.of(uid)} if ended else set()
        for record in ended:
            if record.uid not in used:
                self._close(record.uid, record)

    def inventory(self, *, at_us: int) -> Inventory:
        """The inventory at the time of the last `catch_up`; recomputed only after a change."""
        if self._inventory is None:
            self._inventory = inventory_of(self.accounts.values(), self._pricing, self._limiter, at_us=at_us)
        return self._inventory

    def drain(self) -> tuple[dict[str, NodeRecord | None], dict[tuple[str, int], tuple[str, NodeFacts]]]:
        """Changes since the last call: records, None for dropped ones; and new capacity facts, by UID and time."""
        changed = {uid: self.accounts[uid].record if uid in self.accounts else None for uid in self._changed}
        self._changed.clear()
        learned, self._learned = self._learned, {}
        return changed, learned

    def touch_all(self) -> None:
        """Mark every record as changed."""
        self._changed.update(uid for uid in self.accounts if not is_stand_in(uid))

    def restore(self, records: Iterable[NodeRecord], *, since_us: int) -> None:
        """Restore the nodes of an earlier process; their capacity continues from `since_us`."""
        self._finalized_us = self.asset_prices.since_us = since_us
        for record in records:
            self.asset_prices.see(record.facts)
            self.lapses.put(self._open(record, since_us=since_us).record)
            self._note_conflict(record)
            self.lineage.restored(record)

    def _open(self, record: NodeRecord, *, since_us: int | None = None) -> NodeAccount:
        start_us = self._totals.accounting_start_us if since_us is None else since_us
        account = self.accounts[record.uid] = NodeAccount(record, self._totals, since_us=start_us)
        self._models.put(record)
        uids = self._by_name.setdefault(record.name, [])
        uids.append(record.uid)
        uids.sort(key=lambda uid: self.accounts[uid].record.created_us)
        self._count(record)
        return account

    def _renewed(self, account: NodeAccount, record: NodeRecord) -> Reclassified | None:
        before = account.record
        self.lapses.put(record)
        if record == before:
            return None
        self._observe(account, record)
        since_us = reclassified_us(before.facts, record.facts)
        if (before.unready, before.continues) != (record.unready, record.continues):
            since_us = record.facts[-1][0] if since_us is None else since_us
        return None if since_us is None else Reclassified(record.uid, record.name, since_us)

    def _observe(self, account: NodeAccount, record: NodeRecord) -> None:
        fresh = record.facts[alike(account.record.facts, record.facts) :]
        self._learned |= {(record.uid, from_us): (record.name, facts) for from_us, facts in fresh}
        self.asset_prices.see(fresh)
        account.observe(record)
        self._count(record)
        self._inventory = None
        self._models.put(record)
        self._note_conflict(record)
        self._changed.add(record.uid)
        self._stale.add(record.uid)

    def _count(self, record: NodeRecord) -> None:
        """Count the latest incarnation of a name: the deletion of an earlier one may be observed much later."""
        if self._by_name[record.name][-1] == record.uid:
            self.most.put(record)

    def _note_conflict(self, record: NodeRecord) -> None:
        conflict = record.facts[-1][1].conflict if record.gone_us is None else None
        if conflict and conflict is not self.label_conflicts.get(record.uid):
            self.label_conflicts[record.uid] = self._new_conflicts[record.uid] = conflict
        elif not conflict:
            self.label_conflicts.pop(record.uid, None)

    def take_new_conflicts(self) -> Mapping[str, LabelConflict]:
        """The `label_conflicts` that appeared since the last call, if they still exist."""
        if not self._new_conflicts:
            return {}
        found = {uid: conflict for uid, conflict in self._new_conflicts.items() if uid in self.label_conflicts}
        self._new_conflicts.clear()
        return found

    def _close(self, uid: str, record: NodeRecord) -> None:
        del self.accounts[uid]
        self._models.drop(uid)
        self.label_conflicts.pop(uid, None)
        self._inventory = None
        if is_stand_in(uid):
            return
        self._changed.add(uid)
        self.lineage.closed(record)
        self._by_name[record.name].remove(uid)
        if not self._by_name[record.name]:
            del self._by_name[record.name]

    def labels_of(self, facts: NodeFacts) -> tuple[str, str]:
        """The exported (gpu_model, pool) of an asset."""
        return self._limiter.limit("gpu_model", facts.gpu_model), self._limiter.limit("pool", facts.pool)
