"""Pods whose allocations ended before the retention: which cannot change any more, and which are rolled up."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from gputally.ledger.sqlite.dictionary import Dictionary
from gputally.ledger.sqlite.rows import Row
from gputally.ledger.tables.allocations import TERMS
from gputally.model.allocation import Outcome

_CURRENT: Final = "number = (SELECT max(number) FROM pod_revisions WHERE pod = {pod})"
_SEGMENTS: Final = """
pod_revisions r CROSS JOIN pod_segments s
  ON s.pod = r.pod AND s.ordinal < r.segments
 AND s.number = (SELECT max(number) FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal)
"""
_JOB: Final = "(SELECT outcome_text FROM job_outcomes WHERE job_uid_text = p.job_uid_text)"
_PAGE: Final = "SELECT id FROM pods WHERE id > :after ORDER BY id LIMIT 1 OFFSET :page"
_FIRST_RECORDED: Final = """
SELECT ifnull(recorded_us, revision) FROM pod_revisions
WHERE pod = (SELECT min(id) FROM pods WHERE id > :after) ORDER BY number LIMIT 1
"""
_PODS: Final = f"""
SELECT p.id, p.uid, p.namespace_text, r.job_kind_text, r.job_text, r.node_text, r.node_uid_text,
       r.outcome_text, ifnull({_JOB}, r.outcome_text), max(r.scheduled_us - p.created_us, 0)
FROM pods p CROSS JOIN pod_revisions r ON r.pod = p.id AND r.{_CURRENT.format(pod="p.id")}
WHERE p.id > :after AND p.id <= :upto AND r.end_us <= :before AND ifnull(r.recorded_us, r.revision) <= :before
  AND NOT EXISTS (SELECT 1 FROM working WHERE kind IN ('pod', 'departed') AND uid = p.uid)
  AND NOT EXISTS (SELECT 1 FROM {_SEGMENTS} WHERE r.pod = p.id AND r.{_CURRENT.format(pod="p.id")}
                  AND ifnull(s.end_us, :before + 1) > :before)
  AND NOT EXISTS (SELECT 1 FROM usage_assignments a CROSS JOIN usage_hours h ON h.assignment = a.assignment
                  WHERE a.pod_uid = p.uid AND (h.open OR h.to_us - a.ahead_us > :before))
  AND ifnull({_JOB}, 0) <> ifnull((SELECT id FROM texts WHERE text = '{Outcome.RUNNING.value}'), -1)
ORDER BY p.id LIMIT :pods
"""  # noqa: S608 (literals only)
_SEGMENTS_OF: Final = f"""
SELECT r.pod, s.ordinal, s.start_us, s.end_us, s.quantity, s.terms, ifnull(s.price, 0)
FROM json_each(:pods) AS wanted CROSS JOIN {_SEGMENTS}
WHERE r.pod = wanted.value AND r.{_CURRENT.format(pod="wanted.value")}
ORDER BY r.pod, s.start_us, s.ordinal
"""  # noqa: S608 (literals only)
_FOUND: Final = """
SELECT uid_hash FROM json_each(?) AS wanted CROSS JOIN rolled_pods ON uid_hash = wanted.value
"""
MARK: Final = """
INSERT INTO meta (key, value) VALUES ('detail_start_us', :before), ('roll_ups', '1')
ON CONFLICT (key) DO UPDATE SET value = CASE key
    WHEN 'roll_ups' THEN CAST(CAST(value AS INTEGER) + 1 AS TEXT)
    ELSE CAST(max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER)) AS TEXT)
END
"""
"""Marks in a transaction that something was rolled up, up to where, and for readers that overlap with it."""


class EndedSegment(NamedTuple):
    """A segment of the last revision. `labels` are the numbers of names, outcomes, terms and price of a daily row.

    `wait_us` is how long its pod had waited when it was bound; None but for its first segment.
    """

    uid: str
    resource: str
    start_us: int
    end_us: int
    quantity: int
    labels: Row
    wait_us: int | None

    @property
    def node_uid(self) -> int:
        """The number of the node's UID."""
        number: int = self.labels[4]
        return number


class EndedPods(NamedTuple):
    """A batch of pods in one transaction. `uids` is sorted by the order in which they are read; `after` is the last."""

    uids: Sequence[str]
    segments: Sequence[EndedSegment]
    after: int
    is_last: bool


class EndedPodsReader:
    """Reads the pods in order, each batch in the transaction that rolls it up; `page` pods are looked at for each."""

    def __init__(self, connection: sqlite3.Connection, *, before_us: int, page: int, pods: int) -> None:
        self._execute = connection.execute
        self._before = {"before": before_us, "pods": pods}
        self._terms = Dictionary(connection, TERMS)
        self._page = page
        self._pods = pods

    def batch(self, after: int) -> EndedPods:
        """Pods with a number above `after`.

        A pod that was recorded after the retention began stays: its revisions may be as late, and so all later ones.
        """
        first = self._execute(_FIRST_RECORDED, {"after": after}).fetchone()
        if first is None or first[0] > self._before["before"]:
            return EndedPods((), (), after, is_last=True)
        end = self._execute(_PAGE, {"after": after, "page": self._page - 1}).fetchone()
        upto = end[0] if end else 1 << 62
        found = self._execute(_PODS, {**self._before, "after": after, "upto": upto}).fetchall()
        labels = {number: (uid, names, wait_us) for number, uid, *names, wait_us in found}
        segments = [
            EndedSegment(
                *(uid, self._terms.row(terms)[0], start_us, end_us, quantity, (*names, terms, price)),
                wait_us=None if ordinal else wait_us,
            )
            for pod, ordinal, start_us, end_us, quantity, terms, price in self._execute(_SEGMENTS_OF, _json(labels))
            for uid, names, wait_us in (labels[pod],)
        ]
        uids, is_full = [uid for uid, *_ in labels.values()], len(found) == self._pods
        return EndedPods(uids, segments, found[-1][0] if is_full else upto, is_last=not (is_full or end))


def _json(values: Iterable[object]) -> dict[str, str]:
    return {"pods": json.dumps(list(values))}


def uid_hash(uid: str) -> int:
    """A number of 64 bits; that two pods have the same is less likely than a disk error."""
    return int.from_bytes(blake2b(uid.encode(), digest_size=8).digest(), "big", signed=True)


def rolled_up(connection: sqlite3.Connection, uids: Iterable[str]) -> set[str]:
    """Which of the pods are rolled up."""
    hashes = {uid_hash(uid): uid for uid in uids}
    return {hashes[found] for (found,) in connection.execute(_FOUND, (json.dumps(list(hashes)),))}
