"""The progress of jobs, and which of these jobs began before a time."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gputally.ledger.records import ReachedProgress
from gputally.ledger.sqlite.segment_rows import Row

_REACHED: Final = """
SELECT namespace_text, job_kind_text, job_text,
       (SELECT text FROM texts WHERE id = namespace_text), (SELECT text FROM texts WHERE id = job_kind_text),
       (SELECT text FROM texts WHERE id = job_text), micro, unit
FROM job_progress WHERE at_us <= :end
"""
_BEGAN_BEFORE: Final = """
SELECT j.namespace_text, j.job_kind_text, j.job_text
FROM pods p
CROSS JOIN pod_revisions r ON r.pod = p.id AND r.number = (SELECT max(number) FROM pod_revisions WHERE pod = p.id)
CROSS JOIN job_progress j
  ON j.namespace_text = p.namespace_text AND j.job_kind_text = r.job_kind_text AND j.job_text = r.job_text
WHERE r.scheduled_us < :start
UNION
SELECT j.namespace_text, j.job_kind_text, j.job_text
FROM rolled_periods d
CROSS JOIN daily_rows r ON r.period = d.id
CROSS JOIN job_progress j
  ON j.namespace_text = r.namespace_text AND j.job_kind_text = r.job_kind_text AND j.job_text = r.job_text
WHERE d.start_us < :start
UNION
SELECT j.namespace_text, j.job_kind_text, j.job_text
FROM old_allocations a
CROSS JOIN texts n ON n.text = a.namespace
CROSS JOIN texts k ON k.text = a.job_kind
CROSS JOIN texts t ON t.text = a.job
CROSS JOIN job_progress j ON j.namespace_text = n.id AND j.job_kind_text = k.id AND j.job_text = t.id
WHERE a.scheduled_us < :start
"""


def read_progress(rows: Callable[..., list[Row]], bounds: Mapping[str, Any]) -> Iterator[ReachedProgress]:
    """The progress that was reached by the end of the bounds. Most ledgers have none, and read nothing more."""
    found = rows(_REACHED, bounds)
    earlier = set(rows(_BEGAN_BEFORE, bounds)) if found else set()
    for *job, namespace, kind, name, micro, unit in found:
        is_whole = tuple(job) not in earlier
        yield ReachedProgress(namespace=namespace, job_kind=kind, job=name, micro=micro, unit=unit, is_whole=is_whole)
