"""What preemptions bought: the GPU-time that preemptors had of the GPUs of their victims, and what nobody had."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from gputally.ledger.preemption_records import NodeBinding
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import Window
from gputally.model.disruptions import Preemption, VictimRecord
from gputally.model.units import US_PER_SECOND

_TOLERANCE_US: Final = US_PER_SECOND
"""API times of bindings have whole seconds: a binding may seem this much earlier than the release before it."""


class PreemptionValue(Struct, frozen=True, kw_only=True, gc=False):
    """What became of the GPUs of one victim, in µGPU and µs·µGPU.

    The preemptor took `taken` of them, and had them for `bought`; both None if it is not known. They were `stranded`
    from their release until a pod was bound to them.
    """

    taken: int | None
    bought: int | None
    stranded: int


class Given(Struct, kw_only=True):
    """GPUs that a victim released, of which `free` ones are not taken yet.

    `takers` are the pods for which it was preempted, None if they are not known.
    """

    victim_uid: str
    takers: frozenset[str] | None
    released_us: int
    free: int
    taken: int = 0
    bought: int = 0
    stranded: int = 0

    def is_for(self, pod: NodeBinding) -> bool:
        """Whether the victim was preempted for this pod."""
        return self.takers is not None and pod.pod_uid in self.takers

    def take(self, quantity: int, *, at_us: int) -> int:
        """Up to `quantity` of those that are free. Returns how many."""
        found = min(quantity, self.free)
        self.free -= found
        self.stranded += found * max(0, at_us - self.released_us)
        return found


def read_values(
    reader: LedgerReader, disruptions: Iterable[VictimRecord], *, until_us: int | None = None
) -> dict[str, PreemptionValue]:
    """The values of those preemptions whose victims have released their GPUs, by victim. Raises: LedgerError.

    They count up to `until_us`, by default the end of the ledger. Nothing is known of those from before the retention:
    single pods are not.
    """
    state = reader.state()
    first_us, end_us = (state.detail_start_us or 0) + _TOLERANCE_US, until_us or state.accounted_us
    given: defaultdict[str, list[Given]] = defaultdict(list)
    for each in disruptions:
        if each.by and each.released_us is not None and first_us <= each.released_us <= end_us:
            given[each.node_uid].append(_given(each, each.by, each.released_us))
    if not given:
        return {}
    bound: defaultdict[str, list[NodeBinding]] = defaultdict(list)
    from_us = min(each.released_us for some in given.values() for each in some) - _TOLERANCE_US
    for pod in reader.bindings(Window(from_us, end_us), list(given)):
        bound[pod.node_uid].append(pod)
    ends, found = reader.node_ends(list(given)), dict[str, PreemptionValue]()
    for node, some in given.items():
        found |= values_of(some, bound[node], until_us=min(ends.get(node, end_us), end_us))
    return found


def values_of(given: Sequence[Given], bindings: Iterable[NodeBinding], *, until_us: int) -> dict[str, PreemptionValue]:
    """The values on one node up to `until_us`. Its GPUs are interchangeable.

    A preemptor takes those of its own victims, then, as any other pod, those that were released first.
    """
    waiting = sorted(given, key=lambda each: (each.released_us, each.victim_uid))
    for pod in sorted(bindings, key=lambda each: (each.start_us, each.pod_uid)):
        rest = pod.quantity
        waiting = [each for each in waiting if each.free]
        released = [each for each in waiting if each.released_us < pod.start_us + _TOLERANCE_US]
        for each in sorted(released, key=lambda each: not each.is_for(pod)):
            taken = each.take(rest, at_us=pod.start_us)
            rest -= taken
            if each.is_for(pod):
                each.taken += taken
                each.bought += taken * (pod.end_us - pod.start_us)
    for each in waiting:
        each.take(each.free, at_us=until_us)
    return {each.victim_uid: _value(each) for each in given}


def _given(victim: VictimRecord, by: Preemption, released_us: int) -> Given:
    return Given(victim_uid=victim.victim_uid, takers=by.takers, released_us=released_us, free=victim.quantity)


def _value(given: Given) -> PreemptionValue:
    is_known = given.takers is not None
    return PreemptionValue(
        taken=given.taken if is_known else None,
        bought=given.bought if is_known else None,
        stranded=given.stranded,
    )
