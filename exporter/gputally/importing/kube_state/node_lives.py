"""How long nodes were there, by their samples: no allocation outlives the machine that it is on.

A life is that of one machine under a node's name. A node that registers again continues its life if the system UUID is
the same, as in `accounting.nodes.lineage`.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from gputally.accounting.facts.node_clock import OFF_US
from gputally.importing.kube_state.prometheus_api import us_of
from gputally.importing.kube_state.scrapes import Scrapes
from gputally.model.allocation import End, Gap
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_HOUR, US_PER_SECOND, to_datetime
from gputally.shares.schemes import Units

_PAUSE_S: Final = 600.0
"""Longer than between two scrapes, and shorter than the parts of the window that are read at once."""
_SHOWN: Final = 20
"""Nodes of a note that are named."""


class NodeSample(NamedTuple):
    """A node in one scrape, or at the end of a part of the window; what is not known is None or empty."""

    at_s: float
    created_s: float | None = None
    machine: str = ""
    offered: Units = ()


class MachineLife(Struct, kw_only=True):
    """A machine under a node's name, last seen at `seen_s`; the first scrape without it was at `absent_s`.

    It registered last at `registered_s`, and first at `created_s`. It `offered` at most so many units of each resource.
    In the `pauses`, from one sample to the next, it was away for long.
    """

    created_s: float | None
    registered_s: float | None
    machine: str
    first_s: float
    seen_s: float
    absent_s: float | None = None
    offered: dict[str, int] = field(default_factory=dict)
    pauses: list[tuple[float, float]] = field(default_factory=list)

    def add(self, sample: NodeSample) -> None:
        """A later sample of the same machine."""
        self.registered_s = self.registered_s if sample.created_s is None else sample.created_s
        self.machine = sample.machine or self.machine
        if sample.at_s - self.seen_s > _PAUSE_S:
            self.pauses.append((self.seen_s, sample.at_s))
        self.seen_s = sample.at_s
        for name, amount in sample.offered:
            self.offered[name] = max(amount, self.offered.get(name, 0))

    def has_begun(self, at_us: int) -> bool:
        """Whether a pod that was bound then may be on this machine."""
        if self.created_s is None:
            return us_of(self.first_s) <= at_us
        return us_of(self.created_s) <= at_us + OFF_US


def lives_of(samples: Iterable[NodeSample], shown_s: Sequence[float]) -> list[MachineLife]:
    """The lives of a node, oldest first; at the times `shown_s` (ascending), scrapes showed any nodes."""
    lives: list[MachineLife] = []
    for sample in samples:
        if not lives or not _continues(lives[-1], sample, shown_s):
            at_s, created_s = sample.at_s, sample.created_s
            new = MachineLife(created_s=created_s, registered_s=None, machine="", first_s=at_s, seen_s=at_s)
            lives.append(new)
        lives[-1].add(sample)
    return lives


def _continues(life: MachineLife, sample: NodeSample, shown_s: Sequence[float]) -> bool:
    """Without a system UUID and a time of creation, a node that a scrape did not show was deleted."""
    if life.machine and life.machine == sample.machine:
        return True
    if life.registered_s is not None and sample.created_s is not None:
        return life.registered_s == sample.created_s
    if life.machine and sample.machine:
        return False
    place = bisect_right(shown_s, life.seen_s)
    return place == len(shown_s) or shown_s[place] >= sample.at_s


class NodeLives(Struct, kw_only=True):
    """The lives of all nodes by name, oldest first.

    Scrapes began at `first_s`. At `unlimited_s`, the series of all nodes ended although pods still started: nobody
    exports them since then.
    """

    lives: dict[str, list[MachineLife]] = field(default_factory=dict)
    unlimited_s: float | None = None
    first_s: float = 0.0

    def notes(self) -> list[str]:
        """What limits no allocation."""
        if not self.lives:
            return [
                "no node has samples of kube_node_created or kube_node_status_capacity: pods may outlive their nodes"
            ]
        if self.unlimited_s is None:
            return []
        at = f"{to_datetime(us_of(self.unlimited_s)):%Y-%m-%d %H:%M:%S} UTC"
        return [f"no node has samples after {at}, but pods started: from then on, pods may outlive their nodes"]

    def of_pod(self, node: str, scheduled_us: int) -> MachineLife | None:
        """The machine that a pod was bound to; None if no scrape showed it.

        A node that had registered before the first scrape may have done so again, as the same machine.
        """
        lives = self.lives.get(node, [])
        if begun := [life for life in lives if life.has_begun(scheduled_us)]:
            return begun[-1]
        return lives[0] if lives and (lives[0].created_s or 0.0) <= self.first_s else None

    def limited(self, record: PodRecord, scrapes: Scrapes) -> PodRecord:
        """`record`, which ends at the latest between the last scrape with its machine and the next one.

        A node that no scrape showed limits nothing: it may not be exported. Nor does one that was there in the last of
        the `scrapes`, which are those of pods.
        """
        start_us = record.scheduled_us or 0
        life = self.of_pod(record.node, start_us)
        if record.node not in self.lives or (life and life.seen_s >= scrapes.last_s):
            return record
        next_s = scrapes.next_after((), start_us / US_PER_SECOND)
        absent_s = life.absent_s if life else next_s
        if absent_s is None:
            return record
        absent_us = us_of(absent_s if us_of(absent_s) > start_us else next_s or absent_s)
        return _ended(record, max(start_us, us_of(life.seen_s)) if life else start_us, max(absent_us, start_us))


def _ended(record: PodRecord, seen_us: int, absent_us: int) -> PodRecord:
    """`record` of a pod whose machine left in [seen_us, absent_us]; its own end stays if it is no later."""
    end_us, to_us = seen_us, absent_us
    if record.end_us is not None:
        own_us = record.gap.to_us if record.gap else record.end_us
        if own_us <= (seen_us if record.gap else absent_us):
            return record
        end_us, to_us = min(record.end_us, seen_us), min(own_us, absent_us)
    deletion_us = record.deletion_us if record.deletion_us is None or record.deletion_us <= to_us else None
    gap = Gap(from_us=end_us, to_us=to_us) if to_us > end_us else None
    return replace(record, end_us=end_us, end_by=End.NODE, gap=gap, deletion_us=deletion_us)


class Excess(NamedTuple):
    """More units of a resource were allocated than a machine offered, first at `from_us` and last at `to_us`.

    There were up to `most` units instead of `offered`; `unit_us` of them were too many, in units x µs.
    """

    node: str
    resource: str
    offered: int
    most: int
    from_us: int
    to_us: int
    unit_us: int

    def __str__(self) -> str:
        """For people."""
        start, end = (f"{to_datetime(at_us):%Y-%m-%d %H:%M:%S}" for at_us in (self.from_us, self.to_us))
        return (
            f"node {self.node}: {self.most:,} {self.resource} allocated, but it has {self.offered:,}; "
            f"{self.unit_us / US_PER_HOUR:,.2f} device-hours too many from {start} to {end} UTC"
        )


class NodeAllocations:
    """The allocated units by machine and resource, up to the end of the window."""

    def __init__(self, nodes: NodeLives, until_us: int) -> None:
        self._nodes = nodes
        self._until_us = until_us
        self._unknown = set[str]()
        self._changes: defaultdict[tuple[str, float, str, int], Counter[int]] = defaultdict(Counter)

    def add(self, record: PodRecord) -> None:
        """Count a pod on its machine; the capacity of one that no scrape showed is not known."""
        start_us = record.scheduled_us or 0
        life = self._nodes.of_pod(record.node, start_us)
        if record.node not in self._nodes.lives:
            self._unknown.add(record.node)
        if life is None:
            return
        end_us = self._until_us if record.end_us is None else record.end_us
        for resource, units in record.limited or record.units:
            if end_us > start_us and (offered := life.offered.get(resource)):
                changes = self._changes[record.node, life.first_s, resource, offered]
                changes[start_us] += units
                changes[end_us] -= units

    def excesses(self) -> list[Excess]:
        """The largest first."""
        found = (_excess(key, changes) for key, changes in self._changes.items())
        return sorted((each for each in found if each), key=lambda each: (-each.unit_us, each))

    def notes(self) -> list[str]:
        """The machines on which more was allocated than they have, and the nodes whose lives and GPUs are unknown."""
        found, unknown = self.excesses(), sorted(self._unknown if self._nodes.lives else ())
        more = [f"{len(found) - _SHOWN:,} more nodes have too many allocated"] if len(found) > _SHOWN else []
        if unknown:
            some = ", ".join([*unknown[:_SHOWN], *(["..."] if len(unknown) > _SHOWN else [])])
            more.append(
                f"{len(unknown):,} nodes have no samples: pods may outlive them, or hold more than they have: {some}"
            )
        return [*map(str, found[:_SHOWN]), *more]


def _excess(key: tuple[str, float, str, int], changes: Mapping[int, int]) -> Excess | None:
    node, _, resource, offered = key
    stretches = [each for each in _stretches(changes, offered) if each[-1][1] - each[0][0] >= US_PER_SECOND]
    if not stretches:
        return None
    over = [part for each in stretches for part in each]
    unit_us = sum((to_us - from_us) * (each - offered) for from_us, to_us, each in over)
    return Excess(node, resource, offered, max(each for *_, each in over), over[0][0], over[-1][1], unit_us)


def _stretches(changes: Mapping[int, int], offered: int) -> Iterator[list[tuple[int, int, int]]]:
    """Times without a break in which more was allocated, each as (from, to, units) between two changes.

    One below a second says nothing: times of the API are whole seconds, so a pod may seem to begin before the end of
    the one that had its GPUs.
    """
    units, stretch = 0, list[tuple[int, int, int]]()
    for from_us, to_us in pairwise(sorted(changes)):
        units += changes[from_us]
        if units > offered:
            stretch.append((from_us, to_us, units))
        elif stretch:
            yield stretch
            stretch = []
    if stretch:
        yield stretch
