"""Reads sums of allocated time by dimensions, prices and periods, with the jobs among them; and the jobs' progress."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gputally.ledger.allocated_sums import AllocatedSums, SumsBy
from gputally.ledger.page_groups import KEPT
from gputally.ledger.records import AllocatedTime, JobSet, ReachedProgress
from gputally.ledger.sqlite.daily_sums import daily_allocated
from gputally.ledger.sqlite.dictionary import Numbered
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.sqlite.segment_pages import all_pods, grouped_pages, segment_pages
from gputally.ledger.sqlite.summed_pages import read_stored

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
"""


def read_progress(rows: Callable[..., list[Row]], bounds: Mapping[str, Any]) -> Iterator[ReachedProgress]:
    """The progress that was reached by the end of the bounds. Most ledgers have none, and read nothing more."""
    found = rows(_REACHED, bounds)
    earlier = set(rows(_BEGAN_BEFORE, bounds)) if found else set()
    for *job, namespace, kind, name, micro, unit in found:
        is_whole = tuple(job) not in earlier
        yield ReachedProgress(namespace=namespace, job_kind=kind, job=name, micro=micro, unit=unit, is_whole=is_whole)


class ReadPlan(NamedTuple):
    """How to divide the window: into periods by `cuts`, and its reading into transactions of `page` rows.

    `readers` read pages at the same time, each by a connection of its own.
    """

    cuts: Sequence[int]
    page: int
    readers: Sequence[Rows] = ()


def read_sums(
    rows: Rows, bounds: Mapping[str, Any], sums_by: SumsBy, plan: ReadPlan
) -> tuple[list[AllocatedTime], list[JobSet]]:
    """The GPU-time of all segments by dimensions, price and period; a page has a number of pods."""
    own, with_jobs = sums_by.own, sums_by.jobs_by is not None
    sums = AllocatedSums(Numbered(rows), sums_by, plan.cuts)
    parts = [all_pods(rows, bounds, page=plan.page)]
    if KEPT.issuperset(own):
        stored = read_stored(rows, bounds, plan.cuts)
        for period, of_day in stored.groups(rows):
            sums.add_groups(of_day, period)
        parts = stored.rest(rows, bounds, page=plan.page)
    for pages in parts:
        if plan.cuts:
            for segments in segment_pages(rows, pages, own, with_jobs=with_jobs):
                sums.add(segments)
        else:
            for groups in grouped_pages(plan.readers or [rows], pages, own, with_jobs=with_jobs):
                sums.add_grouped(groups)
    sums.add_daily(daily_allocated(rows, bounds, own, plan.cuts, with_jobs=with_jobs))
    return sums.found()
