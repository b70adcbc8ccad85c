"""The pods that were bound to some nodes.

Parameters are the window [:start, :end), the end of accounting :accounted, and the UIDs :nodes (JSON).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import json

from gputally.ledger.preemption_records import NodeBinding
from gputally.ledger.sqlite.segment_rows import Row
from gputally.ledger.sqlite.sums.names import Rows

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


def read_bindings(rows: Rows, bounds: Mapping[str, Any], nodes: Sequence[str]) -> Iterator[NodeBinding]:
    """One for each pod that was bound in the window."""
    found: list[Row] = []
    for row in rows(_SEGMENTS, {**bounds, "nodes": json.encode(nodes).decode()}):
        if found and found[0][1] != row[1]:
            yield _binding(found)
            found = []
        found.append(row)
    if found:
        yield _binding(found)


def read_node_ends(rows: Rows, nodes: Sequence[str]) -> dict[str, int]:
    """When (µs) those of the nodes that are gone were last there."""
    return dict(rows(_ENDS, {"nodes": json.encode(nodes).decode()}))


def _binding(segments: Sequence[Row]) -> NodeBinding:
    node_uid, pod_uid, start_us = segments[0][:3]
    return NodeBinding(
        node_uid=node_uid,
        pod_uid=pod_uid,
        start_us=start_us,
        end_us=max(end_us for *_, end_us, _ in segments),
        quantity=sum(quantity for *_, at_us, _, quantity in segments if at_us == start_us),
    )
