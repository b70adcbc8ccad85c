"""The statement that reads the latest segments of pods, by the numbers of texts, terms and prices.

It is three times as fast as the views. Parameters are the window [:start, :end), the end of accounting :accounted, and
those of the statement that chooses the pods.
"""

from collections.abc import Sequence
from typing import Final

from gputally.ledger.records import JOB

_NUMBERED: Final = {
    "namespace": "p.namespace_text",
    "node": "r.node_text",
    "node_uid": "r.node_uid_text",
    "job_kind": "r.job_kind_text",
    "job": "r.job_text",
    "outcome": "r.outcome_text",
    "job_outcome": """ifnull(
        (SELECT outcome_text FROM job_outcomes WHERE job_uid_text = p.job_uid_text), r.outcome_text
    )""",
}
"""The dimensions of a pod or revision whose texts have numbers."""
_OF_POD: Final = {"name", "namespace", "job_outcome"}
_FROM: Final = "max(start_us, :start) AS from_us"
_TO: Final = "min(ifnull(end_us, :accounted), :end) AS to_us"
_WAIT: Final = "CASE WHEN s.ordinal = 0 AND s.start_us >= :start THEN max(r.scheduled_us - p.created_us, 0) END"


def segments_of(pods: str, own: Sequence[str], *, with_jobs: bool) -> str:
    """Each segment of the numbers that `pods` selects: `own` dimensions, terms, price, quantity, start, end, wait, job.

    SQLite takes the other columns from max()'s row. A pod with one or two revisions shows by itself which segments are
    replaced: nothing is looked up for it.
    """
    inner = "".join(f"{_NUMBERED.get(each, 'p.name')} AS {each}, " for each in own)
    key = ", ".join((*own, "terms", "price", "quantity"))
    job = ", ".join(f"{_NUMBERED[each]} AS of_{each}" if with_jobs else f"0 AS of_{each}" for each in JOB)
    wait = _WAIT if with_jobs else "NULL"
    joined = "CROSS JOIN pods p ON p.id = s.pod" if with_jobs or _OF_POD & set(own) else ""
    return f"""
SELECT {key}, from_us, to_us, wait_us, {", ".join(f"of_{each}" for each in JOB)} FROM (
    SELECT {inner}{job}, s.terms, s.price, s.quantity, {_FROM}, {_TO}, {wait} AS wait_us
    FROM (
        SELECT pod, max(number) AS latest, segments, unchanged, scheduled_us,
               node_text, node_uid_text, job_kind_text, job_text, outcome_text
        FROM pod_revisions WHERE pod IN ({pods}) GROUP BY pod
    ) r
    CROSS JOIN pod_segments s ON s.pod = r.pod AND s.ordinal < r.segments {joined}
    WHERE s.number = r.latest OR s.ordinal < r.unchanged AND (r.latest = 2 OR NOT EXISTS (
        SELECT 1 FROM pod_segments WHERE pod = s.pod AND ordinal = s.ordinal AND number > s.number
    ))
)
WHERE from_us < to_us
"""  # noqa: S608 (dimensions only)
