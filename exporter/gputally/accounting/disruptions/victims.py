"""Pods that lost their GPUs involuntarily, each as one record: why, to whom, and what followed."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from msgspec.structs import replace

from gputally.accounting.base.state_part import KeyedPart, no_later
from gputally.accounting.facts.allocation import held
from gputally.frameworks.groups import group_of
from gputally.model.allocation import End
from gputally.model.disruptions import OWN_JOB, Cause, Victim
from gputally.model.pod_record import PodRecord

_TIMES: Final = (
    *("decided_us", "requested_us", "stopped_us", "released_us"),
    *("reused_us", "replaced_us", "noticed_us"),
)

_QUANTITY: Final = itemgetter(1)


class Victims(KeyedPart[Victim]):
    """The victims of the last hour and of existing pods, by UID.

    `Preemptions` find for whom they were preempted, and `Disruptions` why they lost their GPUs.
    """

    name = "victim"
    kinds = ()

    def __init__(self) -> None:
        super().__init__()
        self._unwritten: dict[str, Victim | None] = {}

    def restore(self, documents: Iterable[Victim], *, at_us: int) -> None:
        """See `StatePart.restore`."""
        for each in documents:
            by = no_later(each.by, at_us, "noticed_us") if each.by else None
            self.known[each.victim_uid] = replace(no_later(each, at_us, *_TIMES), by=by)

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        super().touch_all()
        self._unwritten |= {uid: each for uid, each in self.known.items() if each.is_recorded}

    def drain_recorded(self) -> dict[str, Victim | None]:
        """New and changed victims for the ledger since the last call, by UID; None for those that were none."""
        unwritten, self._unwritten = self._unwritten, {}
        return unwritten

    def keep(self, victim: Victim) -> None:
        """Store a new or changed victim."""
        known = self.known.get(victim.victim_uid)
        self._store(victim.victim_uid, victim)
        if victim.is_disruption or victim.is_recorded:
            self._unwritten[victim.victim_uid] = victim
        elif known and known.is_recorded:
            self._unwritten[victim.victim_uid] = None

    def withdraw(self, uid: str) -> None:
        """The pod was no victim after all."""
        if (known := self._remove(uid)) and known.is_recorded:
            self._unwritten[uid] = None

    def forget(self, uid: str) -> None:
        """Nothing can change of this victim any more."""
        self._remove(uid)


def facts_of(record: PodRecord) -> dict[str, Any]:
    """What a victim has of its pod, and what may still change."""
    terms = record.terms[-1]
    return {
        "victim_tier": terms.tier,
        "victim_tenant": terms.tenant,
        "job_kind": record.job_kind,
        "job": record.job,
        "node": record.node,
        "node_uid": record.node_uid,
        "requested_us": record.deletion_us,
        "grace_us": record.grace_us,
        "stopped_us": record.end_us if record.end_by is End.FINISHED else None,
        "released_us": record.end_us,
        "exit_code": record.result.exit_code if record.result else None,
    }


def new_victim(record: PodRecord, *, before: Victim | None, at_us: int, **more: Any) -> Victim:  # noqa: ANN401 - fields
    """The victim, observed at `at_us`, with `more` than its pod says; a victim that it was `before` stays counted."""
    return Victim(
        victim_uid=record.uid,
        victim_namespace=record.namespace,
        victim_name=record.name,
        quantity=before.quantity if before else sum(map(_QUANTITY, held(record, record.terms[-1]))),
        noticed_us=at_us,
        group=_group(record) if record.job_kind == OWN_JOB else "",
        by=before.by if before else None,
        **facts_of(record),
        **more,
    )


def only_preempted(record: PodRecord, *, before: Victim | None, at_us: int) -> Victim:
    """The victim that a scheduler preempted before it had its GPUs: a preemption, but no disruption."""
    known_us = before.decided_us if before else at_us
    return new_victim(
        record,
        before=before,
        at_us=before.noticed_us if before else at_us,
        is_disruption=False,
        cause=Cause.PREEMPTION,
        reported=Cause.PREEMPTION,
        decided_us=known_us if record.preempted_us is None else record.preempted_us,
    )


def _group(record: PodRecord) -> str:
    """The group of a pod without an owner; "" for none."""
    group = group_of(record)
    return f"{group.kind}/{group.name}" if group else ""
