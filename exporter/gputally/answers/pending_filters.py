"""Which waiting pods, workloads and gangs match the filters of a question."""

from collections.abc import Collection, Mapping

from gputally.accounting.fleet.pending_now import PendingNow, tenant_of
from gputally.accounting.terms.tier import tier_of_pod
from gputally.accounting.waiting.snapshot import WaitingPod
from gputally.answers.parameters import unknown_values
from gputally.answers.viewer import Viewer
from gputally.model.partial_gangs import PartialGang
from gputally.model.waits import UncreatedWorkload

Filters = Mapping[str, frozenset[str]]
Values = Mapping[str, Collection[str]]
"""What an entry has by the name of a filter; several values if any of them may match."""


def matches(values: Values, filters: Filters) -> bool:
    """Whether an entry with these values matches all filters."""
    return all(not wanted.isdisjoint(values[name]) for name, wanted in filters.items())


def pod_values(waiting: WaitingPod) -> Values:
    """The values of a waiting pod."""
    return {
        "namespace": {waiting.record.namespace},
        "tenant": {waiting.tenant},
        "tier": {waiting.tier},
        "job": {waiting.record.job},
        "reason": {waiting.verdict.reason},
    }


def workload_values(workload: UncreatedWorkload) -> Values:
    """The values of a workload that lacks pods; its name counts as that of its job."""
    return {
        "namespace": {workload.owner.namespace},
        "tenant": {workload.tenant},
        "tier": {workload.tier},
        "job": {workload.job, workload.owner.reference.name},
        "reason": {workload.reason},
    }


def seen_gangs(now: PendingNow, filters: Filters, viewer: Viewer) -> list[PartialGang]:
    """The partial gangs that the reader may see and that match all filters."""
    seen = [each for each in now.gangs if viewer.sees(each.tenant)]
    waiting = {each.record.uid: each for each in now.waiting} if filters else {}
    return [each for each in seen if not filters or matches(_gang_values(now, each, waiting), filters)]


def _gang_values(now: PendingNow, gang: PartialGang, waiting_by_uid: Mapping[str, WaitingPod]) -> Values:
    """The values of a partial gang: its own and those of its pods; the reasons are those of its pods that wait."""
    pods = [now.records[uid] for uid in (*gang.pods, *gang.pending) if uid in now.records]
    waiting = [waiting_by_uid[uid] for uid in gang.pending if uid in waiting_by_uid]
    return {
        "namespace": {gang.namespace},
        "tenant": {gang.tenant},
        "tier": {gang.tier, *(each.tier for each in waiting)},
        "job": {gang.name, *(each.job for each in pods)},
        "reason": {each.verdict.reason for each in waiting},
    }


def unknown_to(now: PendingNow, filters: Filters, viewer: Viewer) -> list[str]:
    """The values of filters that nothing with GPUs has, as far as the reader may know; reasons are checked before."""
    known: dict[str, set[str]] = {
        "namespace": set(now.namespaces) if viewer.tenants is None else set(),
        "tenant": set(viewer.tenants or ()),
        "tier": set(),
        "job": set(),
    }
    waiting = (pod_values(each) for each in now.waiting if viewer.sees(each.tenant))
    missing = (workload_values(each) for each in now.uncreated.described() if viewer.sees(each.tenant))
    gangs = (_gang_values(now, each, {}) for each in now.gangs if viewer.sees(each.tenant))
    for values in (*waiting, *missing, *gangs, *_of_records(now, viewer)):
        for name, found in known.items():
            found.update(values[name])
    return unknown_values(filters, known)


def _of_records(now: PendingNow, viewer: Viewer) -> list[Values]:
    """The values of all pods with GPUs."""
    return [
        {
            "namespace": {each.namespace},
            "tenant": {tenant},
            "tier": {each.terms[-1].tier if each.terms else tier_of_pod(each, now.rules)},
            "job": {each.job},
        }
        for each in now.records.values()
        if viewer.sees(tenant := tenant_of(now, each))
    ]
