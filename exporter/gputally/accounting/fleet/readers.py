"""Which parts read an object: of a pod, one test spares most of them at nearly every event."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gputally.accounting.base.state_part import StatePart
from gputally.accounting.lost_work.container_restarts import ALL_RESTARTING
from gputally.accounting.watched.agents import is_agent
from gputally.frameworks.kueue import TERMINATION_TARGET
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import NO_ANNOTATIONS, Pod
from gputally.model.rules import Rules
from gputally.shares.unknown_devices import names_unknown_device

_READ_CONDITIONS: Final = frozenset({"DisruptionTarget", TERMINATION_TARGET, ALL_RESTARTING})
"""Types of conditions that parts read. Other conditions only state the progress of the pod, which its record has."""

Parts = Sequence[StatePart[Any]]


class Readers:
    """The parts by the kinds that they read.

    A part with `known_pods` reads what few pods say, see `says_more`. A pod that says nothing of it, and of which the
    part knows nothing, changes nothing in it: the part is skipped.
    """

    def __init__(self, parts: Parts, rules: Rules) -> None:
        self.of_kind: Mapping[Kind, Parts] = {kind: [part for part in parts if kind in part.kinds] for kind in Kind}
        self._of_pods = self.of_kind[Kind.PODS]
        self._of_each_pod = [part for part in self._of_pods if part.known_pods is None]
        self._known_pods = [part.known_pods for part in self._of_pods if part.known_pods is not None]
        self._rules = rules

    def of(self, kind: Kind, found: Object) -> Parts:
        """The parts that must read this state of an object, and its deletion."""
        if not isinstance(found, Pod):
            return self.of_kind[kind]
        if says_more(found, self._rules):
            return self._of_pods
        uid = found.metadata.uid
        for known in self._known_pods:
            if uid in known:
                return self._of_pods
        return self._of_each_pod


def says_more(pod: Pod, rules: Rules) -> bool:
    """Whether a pod says more than how far it is.

    It has an annotation that is read, a mark, a nomination, a previous run, a termination message or a claim, or names
    an unknown device, or it is an agent.
    """
    meta, spec, status = pod.metadata, pod.spec, pod.status
    if meta.annotations is not None and meta.annotations != NO_ANNOTATIONS:
        return True
    if status.nominated_node_name or spec.scheduling_group:
        return True
    if spec.resource_claims or status.extended_resource_claim_status:
        return True
    for condition in status.conditions or ():
        if condition.type in _READ_CONDITIONS:
            return True
    statuses = status.container_statuses or ()
    for each in (*statuses, *status.init_container_statuses) if status.init_container_statuses else statuses:
        now, last = each.state, each.last_state
        if (last and last.terminated) or (now and now.terminated and now.terminated.message):
            return True
    return is_agent(pod, rules) or names_unknown_device(pod, rules)
