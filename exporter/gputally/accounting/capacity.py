"""The capacity of a node over time, divided by precedence among the states; a pure function of its history."""

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from gputally.model.node import CapacityPiece, CapacityState, NodeFacts, NodeRecord
from gputally.model.price import Asset, Price

Holding = tuple[int, int | None, int]
"""Start and end (µs; None while it lasts) and µGPU of a part of an allocation on the node."""
CapacityPriceOf = Callable[[Asset, int], Price | None]
"""The price of an asset's capacity at an instant."""
AdmitCapacity = Callable[[NodeFacts], tuple[str, str]]
"""The exported (gpu_model, pool) of a node, bounded."""


def divide(facts: NodeFacts, allocated: int) -> Iterator[tuple[CapacityState, int]]:
    """µGPU by state: capacity + overcommitted = allocated + the others. Allocated wins, the rest is divided.

    What the offered units leave uncovered is unsliced; but whole missing devices, where units are whole,
    and devices that are not allocatable are unhealthy. A node that offers nothing has lost its device plugin.
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


def _schedulable(facts: NodeFacts, rest: int) -> Iterator[tuple[CapacityState, int]]:
    missing = facts.physical - facts.covered
    broken = facts.covered - facts.allocatable
    if not facts.divided:
        broken, missing = broken + missing, 0
    unhealthy = min(rest, broken)
    unsliced = min(rest - unhealthy, missing)
    yield CapacityState.UNHEALTHY, unhealthy
    yield CapacityState.UNSLICED, unsliced
    yield CapacityState.FREE, rest - unhealthy - unsliced


def pieces_of(
    record: NodeRecord,
    holdings: Sequence[Holding],
    *,
    since_us: int,
    price_of: CapacityPriceOf,
    price_changes: tuple[int, ...],
    admit: AdmitCapacity,
) -> tuple[CapacityPiece, ...]:
    """The partition of a node's capacity from `since_us` on, as long as the node exists."""
    steps = _steps(holdings)
    start_us = max(since_us, record.facts[0][0])
    instants = _instants(record, steps, start_us, price_changes)
    pieces: dict[CapacityState, list[CapacityPiece]] = {}
    allocated = sum(quantity for at_us, quantity in steps.items() if at_us < start_us)
    for i, from_us in enumerate(instants):
        to_us = instants[i + 1] if i + 1 < len(instants) else record.gone_us
        allocated += steps.get(from_us, 0)
        facts = facts_at(record, from_us)
        price = price_of(facts.asset, from_us)
        for state, quantity in divide(facts, allocated):
            if quantity:
                piece = CapacityPiece(
                    labels=(*admit(facts), state.value), quantity=quantity, price=price, start_us=from_us, end_us=to_us
                )
                _append(pieces.setdefault(state, []), piece)
    return tuple(piece for parts in pieces.values() for piece in parts)


def facts_at(record: NodeRecord, at_us: int) -> NodeFacts:
    """The facts that held at `at_us`; the first ones before that."""
    found = record.facts[0][1]
    for from_us, facts in record.facts:
        if from_us <= at_us:
            found = facts
    return found


def _steps(holdings: Sequence[Holding]) -> dict[int, int]:
    """Changes of the allocated µGPU by instant."""
    steps: dict[int, int] = {}
    for start_us, end_us, quantity in holdings:
        steps[start_us] = steps.get(start_us, 0) + quantity
        if end_us is not None:
            steps[end_us] = steps.get(end_us, 0) - quantity
    return steps


def _instants(record: NodeRecord, steps: dict[int, int], start_us: int, price_changes: tuple[int, ...]) -> list[int]:
    """Where anything may change between `start_us` and the node's end."""
    candidates = {start_us, *steps, *(from_us for from_us, _ in record.facts), *price_changes}
    end_us = record.gone_us
    return sorted(i for i in candidates if i >= start_us and (end_us is None or i < end_us))


def _append(parts: list[CapacityPiece], piece: CapacityPiece) -> None:
    """Add `piece`, as a continuation of the last one where nothing but time differs."""
    last = parts[-1] if parts else None
    if last and last.end_us == piece.start_us and replace(piece, start_us=last.start_us, end_us=last.end_us) == last:
        parts[-1] = replace(last, end_us=piece.end_us)
    else:
        parts.append(piece)
