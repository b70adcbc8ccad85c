"""Which pods were preempted together: one preemption of their job, however many preemptors it was for."""

from collections.abc import Callable, Iterable

from gputally.model.disruptions.disruption import OWN_JOB, Disruption
from gputally.model.disruptions.preemption_window import CLOSED_US, TOGETHER_US

_Job = tuple[str, str, str, str, str]
"""Namespace, kind and name, tier and tenant: a preemption of a job is that of one tenant."""


class JobPreemptions:
    """The preemptions of jobs to which pods may still be added, each by the UID of its first pod.

    A pod is assigned once, when its preemption is first observed, and the ledger keeps that. `complete_us` returns up
    to when the watch of pods is complete.
    """

    def __init__(self, complete_us: Callable[[], int]) -> None:
        self._complete_us = complete_us
        self._decided_us: dict[_Job, dict[str, int]] = {}
        self._jobs: dict[str, _Job] = {}
        """Where each is in `_decided_us`: the job, tier or tenant of a victim may be learned later."""

    def id_for(self, each: Disruption) -> str:
        """The preemption of its job that a newly observed victim is part of."""
        known = self._open(each)
        together = (uid for uid, at_us in known.items() if abs(each.decided_us - at_us) <= TOGETHER_US)
        if (found := next(together, None)) is None:
            self._add(known, each)
        return found or each.victim_uid

    def restore(self, disruptions: Iterable[Disruption]) -> None:
        """Restore those whose first pod is known."""
        for each in disruptions:
            if each.job_preemption == each.victim_uid:
                self._add(self._open(each), each)

    def forget(self, each: Disruption) -> None:
        """A victim is forgotten."""
        job = self._jobs.pop(each.victim_uid, None)
        if job is not None:
            self._decided_us[job].pop(each.victim_uid)
            if not self._decided_us[job]:
                del self._decided_us[job]

    def _add(self, known: dict[str, int], each: Disruption) -> None:
        """A preemption of a job begins, beside those `known`."""
        known[each.victim_uid] = each.decided_us
        self._jobs[each.victim_uid] = _job_of(each)

    def _open(self, each: Disruption) -> dict[str, int]:
        """Those of the same job to which pods may be added, with the time of their first decision."""
        complete_us, known = self._complete_us(), self._decided_us.get(_job_of(each), {})
        found = {uid: at_us for uid, at_us in known.items() if complete_us < at_us + CLOSED_US}
        for uid in known.keys() - found:
            self._jobs.pop(uid, None)
        self._decided_us[_job_of(each)] = found
        return found


def _job_of(each: Disruption) -> _Job:
    kind, name = each.job_kind, each.job
    if kind == OWN_JOB:
        kind, name = ("group", each.group) if each.group else (OWN_JOB, each.victim_uid)
    return each.victim_namespace, kind, name, each.victim_tier, each.victim_tenant
