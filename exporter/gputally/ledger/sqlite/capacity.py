"""The capacity of nodes and its price, and how much of it was allocated to which pods."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from gputally.ledger.preemption_records import NodeBinding
from gputally.ledger.price_columns import PRICE, price_of
from gputally.ledger.records import CapacityRecord, NodeSteps, pieces
from gputally.ledger.sqlite import dictionary
from gputally.ledger.sqlite.allocation_views import CLIP_FROM, CLIP_TO, IN_PAGE
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.sqlite.segment_pages import all_pods, segment_pages
from gputally.ledger.tables.nodes import CAPACITY
from gputally.ledger.tables.statements import listed
from gputally.model.price import Asset, Price, Purchase

_LINEAGE: Final = """
lineage (node_uid, bound_to) AS (
    SELECT node_uid, node_uid FROM node_ends
    UNION SELECT l.node_uid, r.continues FROM lineage l JOIN reregistrations r ON r.node_uid = l.bound_to
)"""
_LOST: Final = (
    "(SELECT node_uid, gone_us, gone_by_us FROM node_ends WHERE max(gone_us, :start) < min(gone_by_us, :end))"
)
LAST_ALLOCATED: Final = f"""
WITH RECURSIVE {_LINEAGE}
SELECT e.node_uid, max(min(e.gone_by_us, ifnull(s.end_us, :accounted)))
FROM {_LOST} e
JOIN lineage l ON l.node_uid = e.node_uid
JOIN (SELECT node_uid, start_us, end_us FROM allocation_segments WHERE {IN_PAGE} AND quantity > 0) s
  ON s.node_uid = l.bound_to AND s.start_us < e.gone_by_us AND ifnull(s.end_us, :accounted) > e.gone_us
GROUP BY e.node_uid
"""  # noqa: S608 (literals only)
"""The end of the last allocation on each node that was deleted at an unknown time in the window.

A pod is on the node that it was bound to, and on those that continue it; another one may have the same name.
"""
_HELD: Final = """
held AS (
    SELECT node_uid_text, at_us AS from_us,
           sum(change) OVER (PARTITION BY node_uid_text ORDER BY at_us) AS quantity,
           lead(at_us) OVER (PARTITION BY node_uid_text ORDER BY at_us) AS to_us
    FROM node_steps
)"""
"""What was allocated on each node by allocations that are rolled up."""
LAST_ROLLED_UP: Final = f"""
WITH RECURSIVE {_LINEAGE}, {_HELD}
SELECT e.node_uid, max(min(e.gone_by_us, s.to_us))
FROM {_LOST} e
JOIN lineage l ON l.node_uid = e.node_uid
JOIN texts t ON t.text = l.bound_to
JOIN held s ON s.node_uid_text = t.id AND s.quantity > 0 AND s.from_us < e.gone_by_us AND s.to_us > e.gone_us
GROUP BY e.node_uid
"""  # noqa: S608 (literals only)
"""The end of the last of the rolled-up allocations on each of these nodes."""
ROLLED_STEPS: Final = f"""
WITH {_HELD}
SELECT node_uid_text, quantity, max(from_us, :start) AS start_us, min(to_us, :end) AS end_us
FROM held
WHERE quantity > 0 AND from_us < :end AND to_us > :start
  AND :start < (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'detail_start_us')
"""  # noqa: S608 (literals only)
"""Node, µGPU, start and end of what was allocated by allocations that are rolled up."""
_FACTS: Final = f"""
WITH facts AS (
    SELECT {listed(CAPACITY.fields, of="c")}, c.from_us AS start_us, min(
        ifnull(lead(c.from_us) OVER (PARTITION BY c.node_uid ORDER BY c.from_us), :accounted),
        ifnull(
            (SELECT value FROM json_each(:held) WHERE key = c.node_uid),
            ifnull((SELECT gone_us FROM node_ends e WHERE e.node_uid = c.node_uid), :accounted)
        )
    ) AS end_us
    FROM capacity c
)
SELECT node_uid, node, {CLIP_FROM}, {CLIP_TO}, physical, covered, allocatable, divided, ready, cordoned,
       instance_type, gpu_model, pool, purchase, price_labels,
       ifnull((SELECT continues FROM reregistrations r WHERE r.node_uid = facts.node_uid), '')
FROM facts
WHERE {CLIP_FROM} < {CLIP_TO}
ORDER BY node_uid, start_us
"""  # noqa: S608 (literals only)
"""With :held, the end of the last allocation on each node that was deleted at an unknown time (JSON, by node UID)."""

ASSET_PRICES: Final = f"""
SELECT instance_type, gpu_model, pool, a.purchase, price_labels, from_us,
       p.price_key, {listed(PRICE, of="p")}
FROM capacity_prices a LEFT JOIN prices p ON p.price_key = a.price_key
ORDER BY from_us
"""  # noqa: S608 (literals only)


_OFFERED: Final = ("node_uid", "node", "start_us", "end_us", "physical", "covered", "allocatable")
_Prices = tuple[list[int], list[Price | None]]
"""Ascending times (µs), and the price from each on."""
_NO_PRICES: Final[_Prices] = ([], [])
_Steps = tuple["array[int]", "array[int]"]
"""Times (µs) and changes (µGPU)."""
_SEGMENTS: Final = """
SELECT t.text, p.uid, s.start_us, ifnull(s.end_us, :accounted), s.quantity
FROM pod_revisions r
CROSS JOIN texts t ON t.id = r.node_uid_text
CROSS JOIN pods p ON p.id = r.pod
CROSS JOIN pod_segments s
  ON s.pod = r.pod AND s.ordinal < r.segments
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal)
WHERE r.node_uid_text IN (SELECT id FROM texts WHERE text IN (SELECT value FROM json_each(:nodes)))
  AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = r.pod)
  AND ifnull(r.scheduled_us, p.created_us) >= :start AND ifnull(r.scheduled_us, p.created_us) < :end
ORDER BY r.pod, s.start_us
"""
_ENDS: Final = "SELECT node_uid, gone_us FROM node_ends WHERE node_uid IN (SELECT value FROM json_each(:nodes))"


def read_capacity(rows: Rows, bounds: Mapping[str, Any], held: Mapping[str, int]) -> Iterator[CapacityRecord]:
    """The capacity of nodes, divided where its price changes; `held` is the last allocation on lost nodes."""
    prices = _asset_prices(rows)
    for row in rows(_FACTS, {**bounds, "held": msgspec.json.encode(held).decode()}):
        offered = _capacity(row)
        instants, of_asset = prices.get(offered.asset, _NO_PRICES)
        parts = [
            replace(
                offered,
                start_us=piece.start_us,
                end_us=piece.end_us,
                price=of_asset[piece.period - 1] if piece.period else None,
            )
            for piece in pieces(offered.start_us, offered.end_us, instants)
        ]
        yield from _merged(parts)


def read_steps(rows: Rows, bounds: Mapping[str, Any], page: int) -> Iterator[NodeSteps]:
    """The changes of the allocated µGPU by the UID of the node; those of a million segments need 32 MB."""
    numbered, named = (defaultdict[Any, _Steps](lambda: (array("q"), array("q"))) for _ in range(2))
    for segments in segment_pages(rows, all_pods(rows, bounds, page=page), ("node_uid",)):
        for uid, _, _, *span, _, _, _, _ in segments:
            _hold(numbered[uid], *span)
    for uid, *span in rows(ROLLED_STEPS, bounds):
        _hold(numbered[uid], *span)
    texts: dict[int, str] = dict(rows(dictionary.TEXTS, {"ids": msgspec.json.encode(list(numbered)).decode()}))
    for uid, steps in numbered.items():
        named[texts[uid]] = steps
    for uid in sorted(named):
        yield NodeSteps(uid, sorted(zip(*named[uid], strict=True)))


def _hold(steps: _Steps, quantity: int, from_us: int, to_us: int) -> None:
    times, changes = steps
    times.extend((from_us, to_us))
    changes.extend((quantity, -quantity))


def _asset_prices(rows: Rows) -> dict[Asset, _Prices]:
    found: dict[Asset, _Prices] = {}
    for row in rows(ASSET_PRICES, {}):
        asset, from_us, price = _asset(row[:5]), row[5], row[6:]
        instants, prices = found.setdefault(asset, ([], []))
        instants.append(from_us)
        prices.append(price_of(*price) if price[0] else None)
    return found


def _merged(parts: Sequence[CapacityRecord]) -> Iterator[CapacityRecord]:
    """Join consecutive parts at the same price."""
    last = parts[0]
    for part in parts[1:]:
        if part.price == last.price:
            last = replace(last, end_us=part.end_us)
        else:
            yield last
            last = part
    yield last


def _capacity(row: Row) -> CapacityRecord:
    plain, (divided, ready, cordoned), asset = row[:7], row[7:10], row[10:15]
    return CapacityRecord(
        **dict(zip(_OFFERED, plain, strict=True)),
        divided=bool(divided),
        ready=bool(ready),
        cordoned=bool(cordoned),
        asset=_asset(asset),
        price=None,
        continues=row[15],
    )


def _asset(row: Row) -> Asset:
    instance_type, gpu_model, pool, purchase, labels = row
    return Asset(
        instance_type=instance_type,
        gpu_model=gpu_model,
        pool=pool,
        purchase=Purchase(purchase),
        labels=tuple(msgspec.json.decode(labels, type=dict[str, str]).items()),
    )


def read_bindings(rows: Rows, bounds: Mapping[str, Any], nodes: Sequence[str]) -> Iterator[NodeBinding]:
    """One for each pod that was bound in the window."""
    found: list[Row] = []
    for row in rows(_SEGMENTS, {**bounds, "nodes": msgspec.json.encode(nodes).decode()}):
        if found and found[0][1] != row[1]:
            yield _binding(found)
            found = []
        found.append(row)
    if found:
        yield _binding(found)


def read_node_ends(rows: Rows, nodes: Sequence[str]) -> dict[str, int]:
    """When (µs) those of the nodes that are gone were last there."""
    return dict(rows(_ENDS, {"nodes": msgspec.json.encode(nodes).decode()}))


def _binding(segments: Sequence[Row]) -> NodeBinding:
    node_uid, pod_uid, start_us = segments[0][:3]
    return NodeBinding(
        node_uid=node_uid,
        pod_uid=pod_uid,
        start_us=start_us,
        end_us=max(end_us for *_, end_us, _ in segments),
        quantity=sum(quantity for *_, at_us, _, quantity in segments if at_us == start_us),
    )
