"""The nodes of the fleet, by incarnation, with their accounts."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from gputally.accounting.admission import Admission
from gputally.accounting.capacity import CapacityTerms
from gputally.accounting.node import NO_POOL, facts_of, observed
from gputally.accounting.node_account import NodeAccount
from gputally.accounting.pricing import Pricing
from gputally.accounting.totals import Totals
from gputally.model.allocation import Segment
from gputally.model.history import alike
from gputally.model.kube import Node
from gputally.model.node import NodeFacts, NodeRecord
from gputally.model.pod import PodRecord
from gputally.model.price import Asset
from gputally.model.rules import Rules
from gputally.model.units import US_PER_HOUR, to_us

_KEEP_US = US_PER_HOUR
"""How long the account of a node that is gone stays open to late news of its pods."""
_NO_FACTS = NodeFacts(
    physical=0,
    covered=0,
    allocatable=0,
    ready=False,
    cordoned=False,
    gpu_model="unknown",
    pool=NO_POOL,
    asset=Asset(gpu_model="unknown", pool=NO_POOL),
)


class Inventory(NamedTuple):
    """The nodes that exist: how many have GPUs, and labels that contradict each other; µGPU without a price.

    The last by exported (gpu_model, pool), 0 where everything has a price.
    """

    nodes: int
    purchase_conflicts: int
    unpriced: dict[tuple[str, str], int]


class Nodes:
    """Accounts by node UID. A pod's node is the incarnation of its name that existed when the pod was bound."""

    def __init__(self, rules: Rules, pricing: Pricing, totals: Totals, admission: Admission) -> None:
        self.accounts: dict[str, NodeAccount] = {}
        self._rules = rules
        self._pricing = pricing
        self._totals = totals
        self._admission = admission
        self._by_name: dict[str, list[str]] = {}
        self._changed: set[str] = set()
        self._learned: dict[tuple[str, int], tuple[str, NodeFacts]] = {}
        self._inventory: Inventory | None = None
        self._stale: set[str] = set()
        """Nodes whose capacity is to be derived anew."""
        self._settled_us = totals.opened_us
        """Capacity before this was accounted by an earlier process."""

    def known(self) -> set[str]:
        """UIDs of the nodes that exist."""
        return {uid for uid, a in self.accounts.items() if a.record.gone_us is None and not _is_stand_in(uid)}

    def seen(self, node: Node, *, at_us: int) -> str | None:
        """Take in a Node, with GPUs or without: its device plugin may still come.

        Returns: the node's name if its pods must be looked at again.
        """
        meta = node.metadata
        account = self.accounts.get(meta.uid)
        if account is not None and account.record.gone_us is not None:
            return None  # late news of a node that is gone
        facts = facts_of(node, self._rules, self._pricing.label_keys)
        if account is None:
            created_us = min(to_us(meta.creation_timestamp), at_us) if meta.creation_timestamp else at_us
            account = self._open(NodeRecord(uid=meta.uid, name=meta.name, created_us=created_us))
        before = account.record
        record = observed(before, node, facts, at_us=at_us)
        if record == before:
            return None
        self._observe(account, record)
        return meta.name if _reclassifies(before, record.facts[-1][1]) else None

    def gone(self, uid: str, *, at_us: int, since_us: int) -> str | None:
        """The node ceased to exist in [since_us, at_us], but not before anything known of it or of its pods.

        Returns: its name if its pods must be looked at again.
        """
        account = self.accounts.get(uid)
        if account is None or account.record.gone_us is not None:
            return None
        known_us = max(account.record.created_us, account.record.facts[-1][0], min(account.held_us, at_us))
        gone_us = max(min(since_us, at_us), known_us)
        self._observe(account, replace(account.record, gone_us=gone_us))
        return account.record.name

    def of_pod(self, record: PodRecord) -> NodeAccount:
        """The account of the incarnation a bound pod belongs to; a stand-in without GPUs when it is not known.

        One that is said to have gone by then still was the pod's, as long as no other is known: such an end may be the
        beginning of a blind interval.
        """
        bound_us = record.scheduled_us or 0
        uids = self._by_name.get(record.node, ())
        fitting = [uid for uid in uids if _existed(self.accounts[uid].record, bound_us)]
        known = record.node_uid if record.node_uid in self.accounts else f"unknown/{record.node}"
        uid = fitting[-1] if fitting else known
        if uid not in self.accounts:
            stand_in = NodeRecord(uid=uid, name=record.node, created_us=0, facts=((0, _NO_FACTS),))
            self.accounts[uid] = NodeAccount(stand_in, self._totals, since_us=self._settled_us)
        return self.accounts[uid]

    def gone_us(self, record: PodRecord) -> int | None:
        """When the pod's node ceased to exist. A later incarnation ends what was bound to an earlier, unknown one."""
        account = self.accounts[record.node_uid]
        if not _is_stand_in(record.node_uid):
            return account.record.gone_us
        births = (self.accounts[uid].record.created_us for uid in self._by_name.get(record.node, ()))
        return min((birth for birth in births if birth > (record.scheduled_us or 0)), default=None)

    def labels_at(self, name: str) -> tuple[str, str]:
        """The exported (gpu_model, pool) of the node that was last known under `name`."""
        uids = self._by_name.get(name)
        return self.labels_of(self.accounts[uids[-1]].record.facts[-1][1] if uids else _NO_FACTS)

    def most_physical(self, name: str) -> int:
        """The µGPU that the node last known under `name` has, at the most that is remembered; 0 if it is not known."""
        uids = self._by_name.get(name)
        return max((facts.physical for _, facts in self.accounts[uids[-1]].record.facts), default=0) if uids else 0

    def hold(self, uid: str, before: Iterable[Segment], after: Iterable[Segment], *, at_us: int) -> None:
        """Replace what a pod held on the node by what it is now known to have held."""
        if self.accounts[uid].hold(before, after, at_us=at_us):
            self._stale.add(uid)

    def catch_up(self, *, at_us: int) -> None:
        """Derive the capacity of the nodes on which anything changed anew; put off until somebody looks.

        Between two looks a node with many pods changes many times.
        """
        terms = CapacityTerms(self._pricing.of_capacity, self._pricing.changes, self.labels_of)
        for uid in self._stale:
            self.accounts[uid].rebuild(terms, at_us=at_us)
        self._stale.clear()

    def outdate_all(self, *, since_us: int) -> None:
        """Every node's capacity is to be derived anew, after prices of `since_us` or later changed."""
        for account in self.accounts.values():
            account.outdate(since_us)
        self._stale.update(self.accounts)
        self._inventory = None

    def forget_gone(self, now_us: int, in_use: Callable[[], set[str]]) -> None:
        """Drop accounts of nodes long gone, and stand-ins, unless a pod that still exists is on them."""
        self.catch_up(at_us=now_us)
        records = [account.record for account in self.accounts.values()]
        ended = [r for r in records if _is_stand_in(r.uid) or (r.gone_us is not None and r.gone_us < now_us - _KEEP_US)]
        used = in_use() if ended else set()
        for record in ended:
            if record.uid not in used:
                self._close(record.uid, record)

    def inventory(self, *, at_us: int) -> Inventory:
        """What there is at the time of the last `catch_up`; worked out anew only after a change."""
        if self._inventory is None:
            self._inventory = self._counted(at_us)
        return self._inventory

    def _counted(self, at_us: int) -> Inventory:
        facts = [each.record.facts[-1][1] for each in self.accounts.values() if each.record.gone_us is None]
        unpriced: dict[tuple[str, str], int] = {}
        for each in facts:
            if each.physical:
                group = (self._admission.shown("gpu_model", each.gpu_model), self._admission.shown("pool", each.pool))
                missing = 0 if self._pricing.of_capacity(each.asset, at_us) else each.physical
                unpriced[group] = unpriced.get(group, 0) + missing
        conflicts = sum(1 for each in facts if each.purchase_conflict)
        return Inventory(sum(1 for each in facts if each.physical), conflicts, unpriced)

    def drain(self) -> tuple[dict[str, NodeRecord | None], dict[tuple[str, int], tuple[str, NodeFacts]]]:
        """Since the last call: records changed, None for those dropped; what became known, by UID and instant."""
        changed = {uid: self.accounts[uid].record if uid in self.accounts else None for uid in self._changed}
        self._changed.clear()
        learned, self._learned = self._learned, {}
        return changed, learned

    def touch_all(self) -> None:
        """Let every record be written again."""
        self._changed.update(uid for uid in self.accounts if not _is_stand_in(uid))

    def restore(self, records: Iterable[NodeRecord], *, since_us: int) -> None:
        """Take up the nodes an earlier process knew; their capacity goes on from `since_us`."""
        self._settled_us = since_us
        for record in records:
            self._open(record, since_us=since_us)

    def _open(self, record: NodeRecord, *, since_us: int | None = None) -> NodeAccount:
        start_us = self._totals.opened_us if since_us is None else since_us
        account = self.accounts[record.uid] = NodeAccount(record, self._totals, since_us=start_us)
        uids = self._by_name.setdefault(record.name, [])
        uids.append(record.uid)
        uids.sort(key=lambda uid: self.accounts[uid].record.created_us)
        return account

    def _observe(self, account: NodeAccount, record: NodeRecord) -> None:
        fresh = record.facts[alike(account.record.facts, record.facts) :]
        self._learned |= {(record.uid, from_us): (record.name, facts) for from_us, facts in fresh}
        account.observe(record)
        self._inventory = None
        self._changed.add(record.uid)
        self._stale.add(record.uid)

    def _close(self, uid: str, record: NodeRecord) -> None:
        del self.accounts[uid]
        self._inventory = None
        if _is_stand_in(uid):
            return
        self._changed.add(uid)
        self._by_name[record.name].remove(uid)
        if not self._by_name[record.name]:
            del self._by_name[record.name]

    def labels_of(self, facts: NodeFacts) -> tuple[str, str]:
        """The exported (gpu_model, pool), bounded."""
        return self._admission.admit("gpu_model", facts.gpu_model), self._admission.admit("pool", facts.pool)


def _is_stand_in(uid: str) -> bool:
    return uid.startswith("unknown/")


def _existed(record: NodeRecord, at_us: int) -> bool:
    return record.created_us <= at_us and (record.gone_us is None or at_us < record.gone_us)


def _reclassifies(before: NodeRecord, facts: NodeFacts) -> bool:
    """Whether the new facts change what the node's pods are or cost."""
    if not before.facts:
        return True
    latest = before.facts[-1][1]
    return (latest.asset, latest.sharing, latest.offered) != (facts.asset, facts.sharing, facts.offered)
