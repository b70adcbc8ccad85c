"""The next pod on the node of a victim is the first one bound after its release, in any order of observation."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.disruptions.replacements import Replacements
from gputally.model.disruptions import Cause, Victim
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND
from tests.property.examples import examples


class Step(NamedTuple):
    """A pod is released (`victim`) or bound at this second; a bound one may be deleted at once."""

    is_victim: bool
    at: int
    leaves: bool


EXAMPLES = examples(300)
STEPS = st.lists(st.builds(Step, st.booleans(), st.integers(1, 30), st.booleans()), max_size=25)


def disruption(uid: str, released: int) -> Victim:
    return Victim(
        victim_uid=uid,
        victim_namespace="ml",
        victim_name=uid,
        victim_tier="low",
        victim_tenant="ml",
        job_kind="Pod",
        job=uid,
        node="n1",
        node_uid="uid-n1",
        quantity=1,
        reported=Cause.EVICTION,
        cause=Cause.EVICTION,
        decided_us=released * US_PER_SECOND,
        released_us=released * US_PER_SECOND,
        noticed_us=released * US_PER_SECOND,
    )


def pod(uid: str, at: int) -> PodRecord:
    us = at * US_PER_SECOND
    return PodRecord(uid=uid, namespace="ml", name=uid, units=(), created_us=us, scheduled_us=us, node="n1")


class Node:
    """One node whose pods are bound and released; each binding is observed so many `times`."""

    def __init__(self, times: int) -> None:
        self.known: dict[str, Victim] = {}
        self._times = times
        self._present: dict[str, PodRecord] = {}
        self._replacements = Replacements(lambda _node: self._present.values())

    def apply(self, number: int, step: Step) -> None:
        if step.is_victim:
            self._keep(self._replacements.reused(disruption(f"v{number}", step.at)))
            return
        bound = self._present[f"p{number}"] = pod(f"p{number}", step.at)
        for _ in range(self._times):
            for each in list(self._replacements.after(bound)):
                self._keep(each)
        if step.leaves:
            self._replacements.leave(self._present.pop(bound.uid), at_us=100 * US_PER_SECOND)

    def _keep(self, each: Victim) -> None:
        if each.victim_uid in self.known:
            self._replacements.forget(self.known[each.victim_uid])
        self.known[each.victim_uid] = each
        self._replacements.follow(each)


@given(STEPS, st.integers(1, 2))
@EXAMPLES
def test_the_first_binding_after_the_release_is_found_in_any_order(steps: list[Step], times: int) -> None:
    node = Node(times)
    for number, step in enumerate(steps):
        node.apply(number, step)

    bindings = [step.at for step in steps if not step.is_victim]
    for each in node.known.values():
        released = (each.released_us or 0) // US_PER_SECOND
        expected = min((max(at, released) for at in bindings if at > released - 1), default=None)
        assert each.reused_us == (None if expected is None else expected * US_PER_SECOND)
