"""Bound pods that ask for GPUs which are not accounted, by reason. They are counted and named, and never billed."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from gputally.accounting.base.compact import shared
from gputally.accounting.base.state_part import KeyedPart, StatePart
from gputally.accounting.facts.allocation import held
from gputally.accounting.facts.release import lapsed_us
from gputally.model.kube.kinds import Kind, Limit
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import ENDED_PHASES, Pod
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules
from gputally.model.unaccounted import KNOWN_GPUS, Unaccounted, UnaccountedDay, UnaccountedEntry, UnaccountedPod
from gputally.model.units import to_datetime
from gputally.shares.schemes import rule_of
from gputally.shares.unknown_devices import DEVICE_CLASS, is_unknown_device, names_device, names_unknown_device

UNACCOUNTED_READING: Final = "1"
"""Increase it when other pods than before are unaccounted: those that were not watched must be listed."""
_MOST_NAMES: Final = 64
"""Names kept of one pod, see `shares.request`: a node offers fewer."""
_MOST_UNKNOWN: Final = 4
"""Unknown devices kept of one pod, which are only named."""
_amount_of = itemgetter(1)
Missing = tuple[tuple[str, int], ...]
"""µGPU by resource that a pod requests and that are not accounted."""


class UnaccountedNow(NamedTuple):
    """Pods by reason, and their µGPU where these are known; 0 for reasons that no pod has."""

    pods: Mapping[Unaccounted, int]
    quantities: Mapping[Unaccounted, int]


NONE_UNACCOUNTED: Final = UnaccountedNow({}, {})


def may_be_unaccounted(pod: Pod, rules: Rules) -> bool:
    """Whether the pod must be watched for what its claims or its containers name; constant over its lifetime."""
    return bool(pod.spec.resource_claims) or names_device(pod, rules)


class UnaccountedPods(StatePart[UnaccountedPod]):
    """Bound, unfinished pods with GPUs that are not accounted.

    A pod is known from two sources: `seen` reads its object for devices that its record does not have, and `accounted`
    compares what its record requests with what is accounted.
    """

    name = "claim-pod"
    kinds = (Kind.PODS,)

    def __init__(self, rules: Rules) -> None:
        self.entries: dict[str, tuple[UnaccountedEntry, ...]] = {}
        """Entries by pod UID; a pod has one for each of its reasons."""
        self.objects: dict[str, UnaccountedPod] = {}
        """Pods by UID with devices that their records do not have."""
        self.known_pods = self.objects
        self._rules = rules
        self._missing: dict[str, Missing] = {}
        self._changed: set[str] = set()
        self._pods = dict.fromkeys(Unaccounted, 0)
        self._quantities = dict.fromkeys(Unaccounted, 0)
        self._peaks: dict[Unaccounted, tuple[int, int]] = {}

    def seen(self, found: Object, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.seen`."""
        if not isinstance(found, Pod):
            return
        is_claiming = found.spec.resource_claims or found.status.extended_resource_claim_status
        if is_claiming or found.metadata.uid in self.objects or names_unknown_device(found, self._rules):
            is_over = not found.spec.node_name or found.status.phase in ENDED_PHASES
            self._store(found.metadata.uid, None if is_over else unaccounted_pod(found, self._rules))

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`."""
        self._store(uid, None)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self.objects.keys() - uids:
            self.gone(uid, at_us=at_us)

    def accounted(self, record: PodRecord, *, at_us: int) -> None:
        """The pod was accounted as `record` at `at_us`."""
        missing = missing_of(record, at_us=at_us)
        if missing or record.uid in self._missing:
            self._miss(record.uid, missing)

    def forgotten(self, uid: str) -> None:
        """There is no record of the pod any more."""
        if uid in self._missing:
            self._miss(uid, ())

    def read(self) -> UnaccountedNow:
        """The counts now."""
        return UnaccountedNow(dict(self._pods), {reason: self._quantities[reason] for reason in KNOWN_GPUS})

    def example(self, reason: Unaccounted, records: Mapping[str, PodRecord]) -> str:
        """A pod with this reason, as namespace/name; "" without one."""
        with_reason = (uid for uid, entries in self.entries.items() if any(each.reason is reason for each in entries))
        pod = next((records.get(uid) or self.objects[uid] for uid in with_reason), None)
        return f"{pod.namespace}/{pod.name}" if pod else ""

    def drain_peaks(self) -> Mapping[Unaccounted, tuple[int, int]]:
        """The most pods and µGPU at a time since the last call, by reason; none for reasons that no pod had."""
        found = self._peaks
        self._peaks = {reason: (pods, self._quantities[reason]) for reason, pods in self._pods.items() if pods}
        return found

    def restore(self, documents: Iterable[UnaccountedPod], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`."""
        for each in documents:
            self.objects[each.uid] = each
            self._renew(each.uid)

    def drain(self) -> dict[str, UnaccountedPod | None]:
        """See `StatePart.drain`."""
        changed = {uid: self.objects.get(uid) for uid in self._changed}
        self._changed.clear()
        return changed

    def touch_all(self) -> None:
        """See `StatePart.touch_all`."""
        self._changed |= self.objects.keys()

    def _store(self, uid: str, found: UnaccountedPod | None) -> None:
        if self.objects.get(uid) == found:
            return
        if found is None:
            del self.objects[uid]
        else:
            self.objects[uid] = found
        self._changed.add(uid)
        self._renew(uid)

    def _miss(self, uid: str, missing: Missing) -> None:
        if self._missing.get(uid) == missing:
            return
        if missing:
            self._missing[uid] = missing
        else:
            del self._missing[uid]
        self._renew(uid)

    def _renew(self, uid: str) -> None:
        """Replace the entries of the pod, and what they add to the counts."""
        before = self.entries.pop(uid, ())
        after = tuple(_entries(self.objects.get(uid), self._missing.get(uid, ()), self._rules))
        if after:
            self.entries[uid] = after
        for sign, entries in ((-1, before), (1, after)):
            for each in entries:
                self._pods[each.reason] += sign
                self._quantities[each.reason] += sign * (each.quantity or 0)
        for each in after:
            pods, quantity = self._peaks.get(each.reason, (0, 0))
            now = self._pods[each.reason], self._quantities[each.reason]
            self._peaks[each.reason] = max(pods, now[0]), max(quantity, now[1])


class UnaccountedDays(KeyedPart[UnaccountedDay]):
    """The most unaccounted pods at a time, for reports: a document for each day and each reason that occurred.

    Beyond `document_limit`, the oldest day is forgotten.
    """

    name = "unaccounted-day"
    document_limit = Limit(None, 20_000)
    """Ten years in which each reason occurred each day."""
    kinds = ()

    def __init__(self, pods: UnaccountedPods) -> None:
        super().__init__()
        self._pods = pods

    def advance(self, now_us: int) -> None:
        """See `StatePart.advance`."""
        day = f"{to_datetime(now_us):%Y-%m-%d}"
        for reason, (pods, quantity) in self._pods.drain_peaks().items():
            key = f"{day} {reason}"
            known = self.known.get(key)
            if known is None or known.pods < pods or known.quantity < quantity:
                most = max(pods, known.pods if known else 0), max(quantity, known.quantity if known else 0)
                self._store(key, UnaccountedDay(day=day, reason=reason, pods=most[0], quantity=most[1]))
        while len(self.known) > self.document_limit.most:
            self._remove(min(self.known))

    def restore(self, documents: Iterable[UnaccountedDay], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`."""
        self.known = {f"{each.day} {each.reason}": each for each in documents}


def unaccounted_pod(pod: Pod, rules: Rules) -> UnaccountedPod | None:
    """What the bound `pod` has that its record does not, if anything."""
    claims, mapped, named = pod.spec.resource_claims, _mapped(pod), sorted(_requested(pod))
    by_claim = [name for name in named if name.startswith(DEVICE_CLASS) or (name in mapped and _is_gpu(name, rules))]
    unknown = [name for name in named if name not in mapped and is_unknown_device(name, rules)]
    if not (claims or by_claim or unknown):
        return None
    return UnaccountedPod(
        uid=pod.metadata.uid,
        namespace=shared(pod.metadata.namespace),
        name=pod.metadata.name,
        node=shared(pod.spec.node_name),
        has_claim=bool(claims),
        by_claim=shared(tuple(by_claim[:_MOST_NAMES])),
        unknown=shared(tuple(unknown[:_MOST_UNKNOWN])),
    )


def missing_of(record: PodRecord, *, at_us: int) -> Missing:
    """What a bound pod that holds its node's devices requests and is not accounted.

    The µGPU of a resource are 0 if its whole request amounts to nothing.
    """
    if not record.terms or record.end_by is not None:
        return ()
    wanted = record.terms[-1].quantities
    has_all = record.limited is None and any(map(_amount_of, wanted))
    if has_all or lapsed_us(record, at_us) is not None:
        return ()
    if record.limited is None:
        return tuple((name, 0) for name, _ in record.units)
    has, offered = dict(held(record, record.terms[-1])), dict(record.limited)
    short = [name for name, units in record.units if offered.get(name, 0) < units]
    lacks = {name: quantity - has.get(name, 0) for name, quantity in wanted}
    return tuple((name, lacks.get(name, 0)) for name in short)


def _entries(found: UnaccountedPod | None, missing: Missing, rules: Rules) -> Iterator[UnaccountedEntry]:
    by_claim = found.by_claim if found else ()
    served = {name: quantity for name, quantity in missing if name in by_claim}
    other = {name: quantity for name, quantity in missing if name not in by_claim}
    short = {name: quantity for name, quantity in other.items() if quantity}
    without_rule = [name for name in by_claim if not rule_of(name, rules)]
    if served or without_rule:
        names = tuple(sorted({*served, *without_rule}))
        quantity = sum(served.values()) if served else None
        yield UnaccountedEntry(reason=Unaccounted.DRA_EXTENDED_RESOURCE, resources=names, quantity=quantity)
    if short:
        yield UnaccountedEntry(reason=Unaccounted.NOT_OFFERED, resources=tuple(short), quantity=sum(short.values()))
    elif other and not served:
        yield UnaccountedEntry(reason=Unaccounted.NO_SHARE, resources=tuple(other))
    if found and found.has_claim:
        yield UnaccountedEntry(reason=Unaccounted.CLAIM)
    if found and found.unknown:
        yield UnaccountedEntry(reason=Unaccounted.UNKNOWN_DEVICE, resources=found.unknown)


def _mapped(pod: Pod) -> frozenset[str]:
    """The extended resources that a ResourceClaim serves."""
    status = pod.status.extended_resource_claim_status
    return frozenset(each.resource_name for each in status.request_mappings or ()) if status else frozenset()


def _requested(pod: Pod) -> set[str]:
    """The resources that containers request, without those of which they request 0."""
    containers = (*pod.spec.containers, *(pod.spec.init_containers or ()))
    amounts = (
        amount
        for each in containers
        if each.resources
        for amount in (*(each.resources.limits or {}).items(), *(each.resources.requests or {}).items())
    )
    return {name for name, amount in amounts if str(amount) != "0"}


def _is_gpu(resource: str, rules: Rules) -> bool:
    return bool(rule_of(resource, rules)) or is_unknown_device(resource, rules)
