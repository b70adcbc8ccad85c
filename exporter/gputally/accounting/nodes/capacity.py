"""The capacity of a node over time, split into states by precedence; a pure function of the node's history."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from gputally.model.node_record import CapacitySlice, CapacityState, NodeFacts, NodeRecord
from gputally.model.price import Asset, Price

Steps = Mapping[int, int]
"""Changes of the allocated µGPU of a node by instant (µs)."""


class CapacityTerms(NamedTuple):
    """Fleet-wide inputs for the capacity of every node.

    `price_of` returns the price of an asset's capacity at an instant, which may change at `price_changes`; `limit`
    returns the exported (gpu_model, pool) of a node.
    """

    price_of: Callable[[Asset, int], Price | None]
    price_changes: tuple[int, ...]
    limit: Callable[[NodeFacts], tuple[str, str]]


class Offered(Protocol):
    """What a node offers, in µGPU, see `NodeFacts`."""

    @property
    def physical(self) -> int:
        """The GPUs of the node."""

    @property
    def covered(self) -> int:
        """The GPUs that its resources cover."""

    @property
    def allocatable(self) -> int:
        """The allocatable part of these."""

    @property
    def divided(self) -> bool:
        """Whether any unit is a part of a GPU, or the node has never offered its GPUs."""

    @property
    def ready(self) -> bool:
        """Whether the node is ready."""

    @property
    def cordoned(self) -> bool:
        """Whether it accepts no new pods."""


def divide(facts: Offered, allocated: int) -> Iterator[tuple[CapacityState, int]]:
    """µGPU by state: capacity + overcommitted = allocated + all other states. Allocated has precedence.

    GPUs that the offered units do not cover are unsliced; but whole missing devices, where units are whole, and devices
    that are not allocatable are unhealthy. A node that no longer offers anything has lost its device plugin; the GPUs
    of one that has never offered any, which only its labels count, are unsliced.
    """
    yield CapacityState.ALLOCATED, allocated
    rest = facts.physical - allocated
    if rest < 0:
        yield CapacityState.OVERCOMMITTED, -rest
    elif not facts.ready:
        yield CapacityState.UNKNOWN, rest
    elif facts.cordoned:
        yield CapacityState.CORDONED, rest
    else:
        yield from _schedulable(facts, rest)


def _schedulable(facts: Offered, rest: int) -> Iterator[tuple[CapacityState, int]]:
    missing = facts.physical - facts.covered
    broken = facts.covered - facts.allocatable
    if not facts.divided:
        broken, missing = broken + missing, 0
    unhealthy = min(rest, broken)
    unsliced = min(rest - unhealthy, missing)
    yield CapacityState.UNHEALTHY, unhealthy
    yield CapacityState.UNSLICED, unsliced
    yield CapacityState.FREE, rest - unhealthy - unsliced


def slices_of(
    record: NodeRecord,
    steps: Steps,
    *,
    since_us: int,
    allocated: int,
    terms: CapacityTerms,
) -> list[CapacitySlice]:
    """The capacity of a node from `since_us` on, by time and state; allocations after the node's end are overcommitted.

    `since_us` is not before the first facts; `allocated` is the µGPU allocated just before `since_us`.
    """
    slices: list[CapacitySlice] = []
    instants = _instants(record, steps, since_us, terms.price_changes)
    for i, from_us in enumerate(instants):
        allocated += steps.get(from_us, 0)
        facts = facts_at(record, from_us)
        if record.gone_us is not None and from_us >= record.gone_us:
            facts = replace(facts, physical=0, covered=0, allocatable=0)
        following = CapacitySlice(
            labels=terms.limit(facts),
            parts=tuple((state.value, quantity) for state, quantity in divide(facts, allocated) if quantity),
            allocated=allocated,
            price=terms.price_of(facts.asset, from_us),
            start_us=from_us,
            end_us=instants[i + 1] if i + 1 < len(instants) else None,
        )
        extend(slices, following)
    return slices


def facts_at(record: NodeRecord, at_us: int) -> NodeFacts:
    """The facts in effect at `at_us`; before the first ones, the first ones."""
    return record.facts[max(0, bisect_right(record.facts, at_us, key=_from_us) - 1)][1]


def _instants(record: NodeRecord, steps: Steps, since_us: int, price_changes: tuple[int, ...]) -> list[int]:
    """The instants from `since_us` on at which anything may change."""
    facts = (from_us for from_us, _ in record.facts[bisect_right(record.facts, since_us, key=_from_us) :])
    gone_us = since_us if record.gone_us is None else record.gone_us
    candidates = {since_us, gone_us, *steps, *facts, *price_changes[bisect_right(price_changes, since_us) :]}
    return sorted(at_us for at_us in candidates if at_us >= since_us)


def _from_us(entry: tuple[int, NodeFacts]) -> int:
    return entry[0]


def extend(slices: list[CapacitySlice], following: CapacitySlice) -> None:
    """Append `following` to `slices`; merge it with the last slice if only the time differs."""
    last = slices[-1] if slices else None
    if last and replace(following, start_us=last.start_us, end_us=last.end_us) == last:
        slices[-1] = replace(last, end_us=following.end_us)
    else:
        slices.append(following)
