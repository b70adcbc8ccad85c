"""What the ledger knows of pods that wait no longer."""

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from gputally.errors import LedgerError
from gputally.ledger.open import open_reader
from gputally.ledger.protocol import LedgerReader
from gputally.ledger.records import AllocationRecord, LedgerState, Records, SegmentRecord, WaitRecord, Window
from gputally.model.disruptions import PREEMPTIONS, VictimRecord
from gputally.model.units import US_PER_DAY

_EVER: Final = Window(0, 2**62)
_LATELY_US: Final = 30 * US_PER_DAY
"""How far back preemptions are searched by name."""

logger = logging.getLogger(__name__)
Found = TypeVar("Found")


class PastPod(NamedTuple):
    """A pod that is gone: its waits, its allocation if it was bound, and its preemption, if any."""

    namespace: str
    name: str
    uid: str
    tier: str
    tenant: str
    quantity: int
    waits: Sequence[WaitRecord] = ()
    allocation: AllocationRecord | None = None
    preempted: VictimRecord | None = None


class PastVictims(NamedTuple):
    """All pods of a job that were preempted from `from_us` on, None if nothing is known of any time."""

    from_us: int | None
    victims: Sequence[VictimRecord] = ()


class PastPods(Protocol):
    """Reads the past. Its calls block."""

    def waits(self, uid: str) -> Sequence[WaitRecord]:
        """The waits of a pod, the oldest first."""

    def last_named(self, namespace: str, name: str) -> PastPod | None:
        """The last pod of that name that waited, held GPUs or was preempted."""

    def victims(self, namespace: str, job: str) -> PastVictims:
        """The pods of a job that were preempted lately."""

    def records_from_us(self) -> int | None:
        """From when on pods are known (µs); None if that is not known."""


class LedgerPods:
    """Reads the ledger at `url`. If that cannot be read now, nothing is known."""

    def __init__(self, url: str) -> None:
        self._url = url

    def waits(self, uid: str) -> Sequence[WaitRecord]:
        """See `PastPods.waits`."""
        return self._read(lambda reader: list(reader.waits(_EVER, pod_uid=uid)), default=[])

    def last_named(self, namespace: str, name: str) -> PastPod | None:
        """See `PastPods.last_named`."""
        return self._read(lambda reader: last_pod(reader, namespace, name), default=None)

    def victims(self, namespace: str, job: str) -> PastVictims:
        """See `PastPods.victims`."""
        return self._read(lambda reader: last_victims(reader, namespace, job), default=PastVictims(None))

    def records_from_us(self) -> int | None:
        """See `PastPods.records_from_us`."""
        return self._read(lambda reader: pods_from_us(reader.state()), default=None)

    def _read(self, read: Callable[[LedgerReader], Found], *, default: Found) -> Found:
        try:
            with open_reader(self._url) as reader:
                return read(reader)
        except LedgerError as error:
            logger.warning("the past of pods cannot be read: %s", error)
            return default


def pods_from_us(state: LedgerState) -> int | None:
    """From when on (µs) a pod is known that waited or held GPUs: one that was never bound has only waits."""
    starts = (state.records_from_us(each) for each in (Records.PODS, Records.WAITS))
    return max((each for each in starts if each is not None), default=None)


def last_victims(reader: LedgerReader, namespace: str, job: str) -> PastVictims:
    """The pods of a job that were preempted lately, in chronological order."""
    state = reader.state()
    from_us = state.records_from_us(Records.DISRUPTIONS)
    if from_us is None:
        return PastVictims(None)
    since = Window(max(from_us, state.accounted_us - _LATELY_US), _EVER.end_us)
    found = list(reader.disruptions(since, causes=PREEMPTIONS, of_job=(namespace, job)))
    return PastVictims(since.start_us, found)


def last_pod(reader: LedgerReader, namespace: str, name: str) -> PastPod | None:
    """The last pod of that name that waited or held GPUs, or was preempted lately."""
    found, held = list(reader.waits(_EVER, named=(namespace, name))), reader.last_segment(namespace, name)
    if held and not (found and found[-1].from_us > held.segment.start_us):
        return _holder(reader, held, [each for each in found if each.pod_uid == held.pod_uid])
    if not found:
        return _last_victim(reader, namespace, name)
    uid, last = found[-1].pod_uid, found[-1]
    waits = [each for each in found if each.pod_uid == uid]
    return PastPod(
        namespace=namespace,
        name=name,
        uid=uid,
        tier=last.tier,
        tenant=last.tenant,
        quantity=last.quantity,
        waits=waits,
        allocation=reader.allocation(uid),
        preempted=_preempted(reader, uid, since_us=waits[0].from_us),
    )


def _holder(reader: LedgerReader, last: SegmentRecord, waits: Sequence[WaitRecord]) -> PastPod:
    """A pod that held GPUs, whether it waited for them or was bound at once."""
    segment, known = last.segment, reader.allocation(last.pod_uid)
    return PastPod(
        namespace=last.namespace,
        name=last.name,
        uid=last.pod_uid,
        tier=segment.tier,
        tenant=segment.tenant,
        quantity=segment.quantity,
        waits=waits,
        allocation=known,
        preempted=_preempted(reader, last.pod_uid, since_us=known.created_us if known else segment.start_us),
    )


def _preempted(reader: LedgerReader, uid: str, *, since_us: int) -> VictimRecord | None:
    since = reader.preemptions(Window(since_us, _EVER.end_us))
    return next((each for each in since if each.victim_uid == uid), None)


def _last_victim(reader: LedgerReader, namespace: str, name: str) -> PastPod | None:
    """A pod that was bound at once, so that it has no waits, and that was preempted."""
    since = Window(max(0, reader.state().accounted_us - _LATELY_US), _EVER.end_us)
    named = [
        each for each in reader.preemptions(since) if (each.victim_namespace, each.victim_name) == (namespace, name)
    ]
    if not named:
        return None
    victim = named[-1]
    return PastPod(
        namespace=namespace,
        name=name,
        uid=victim.victim_uid,
        tier=victim.victim_tier,
        tenant=victim.victim_tenant,
        quantity=victim.quantity,
        allocation=reader.allocation(victim.victim_uid),
        preempted=victim,
    )
