"""The allocated time of some pods on one day (UTC), added up by job, terms and price; and as bytes.

Reports read it instead of the segments, so it has what they ask for most.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from msgspec import msgpack

from gputally.model.units import US_PER_DAY

KEPT: Final = frozenset(("namespace", "job_kind", "job"))
"""The dimensions of pods and revisions that groups have."""


class Group(NamedTuple):
    """Jobs of one namespace and kind with the same terms, price and quantity, all by number; the jobs ascend.

    `times` (µs) are the sums of each job. `bound` is how many of its pods were bound, and `wait_us` how long these had
    waited; both are empty if none were.
    """

    terms: int
    price: int | None
    quantity: int
    namespace: int
    kind: int
    jobs: Sequence[int]
    times: Sequence[int]
    bound: Sequence[int]
    wait_us: Sequence[int]


_Key = tuple[int, int | None, int, int, int]
_ByJob = defaultdict[int, list[int]]
"""Time, number of waits and their sum."""
Span = tuple[int, int | None, int, int, int, int | None, int, int, int]
"""Terms, price, quantity, start, end, wait, and the namespace, kind and name of the job, by number."""
_DECODER: Final = msgpack.Decoder(list[Group])


def groups_by_day(found: Iterable[Span]) -> dict[int, list[Group]]:
    """The groups of these segments by day since the epoch; the same for the same segments in any order."""
    days = defaultdict[int, defaultdict[_Key, _ByJob]](lambda: defaultdict(lambda: defaultdict(lambda: [0, 0, 0])))
    for terms, price, quantity, from_us, to_us, wait_us, namespace, kind, job in found:
        key = terms, price, quantity, namespace, kind
        for day in range(from_us // US_PER_DAY, (to_us - 1) // US_PER_DAY + 1):
            start_us = max(from_us, day * US_PER_DAY)
            amounts = days[day][key][job]
            amounts[0] += min(to_us, (day + 1) * US_PER_DAY) - start_us
            if wait_us is not None and start_us == from_us:
                amounts[1] += 1
                amounts[2] += wait_us
    return {day: [_group(key, groups[key]) for key in sorted(groups, key=_order)] for day, groups in days.items()}


def _order(key: _Key) -> tuple[int, ...]:
    return tuple(each or 0 for each in key)


def _group(key: _Key, by_job: _ByJob) -> Group:
    jobs = sorted(by_job)
    times, bound, wait_us = zip(*(by_job[each] for each in jobs), strict=True)
    return Group(*key, jobs, times, *((bound, wait_us) if any(bound) else ((), ())))


def encoded(groups: Iterable[Group]) -> bytes:
    """The groups as bytes; jobs are written as differences to the one before, which are short."""
    return msgpack.encode([each._replace(jobs=_differences(each.jobs)) for each in groups])


def decoded(stored: bytes) -> list[Group]:
    """The groups again. Raises: msgspec.DecodeError if these bytes are others'."""
    return [each._replace(jobs=[*accumulate(each.jobs)]) for each in _DECODER.decode(stored)]


def _differences(ascending: Sequence[int]) -> list[int]:
    return [now - before for before, now in zip((0, *ascending), ascending, strict=False)]
