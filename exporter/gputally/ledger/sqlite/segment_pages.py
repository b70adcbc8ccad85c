"""Reads the latest segments of pods in pages, by several connections at once if they are given.

The statement reads them by the numbers of texts, terms and prices: three times as fast as by the views. Its parameters
are the window [:start, :end), the end of accounting :accounted, and those of the statement that chooses the pods.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from gputally.ledger.records import JOB
from gputally.ledger.sqlite.pod_days import IN_WINDOW
from gputally.ledger.sqlite.rows import Row, Rows

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


_LAST_POD: Final = "SELECT ifnull(max(id), 0) FROM pods"
_AHEAD: Final = 2
"""Pages that each reader may be ahead, which bounds memory."""


def last_pod(rows: Rows) -> int:
    """The highest number of a pod, which is about how many there are."""
    [(last,)] = rows(_LAST_POD, {})
    return int(last)


def read_pages(readers: Sequence[Rows], sql: str, pages: Iterator[Mapping[str, Any]]) -> Iterator[Sequence[Row]]:
    """The rows of each page, in order; a single reader reads in this thread."""
    if len(readers) == 1:
        yield from (readers[0](sql, page) for page in pages)
        return
    with ExitStack() as stack:
        threads = [stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="pages")) for _ in readers]
        ahead: deque[Future[Sequence[Row]]] = deque()
        for number, page in enumerate(pages):
            ahead.append(threads[number % len(readers)].submit(readers[number % len(readers)], sql, page))
            if len(ahead) >= _AHEAD * len(readers):
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


class Pages(NamedTuple):
    """What to read: `pods` is the statement that selects the pods of a page, and `values` are its parameters."""

    pods: str
    values: Iterable[Mapping[str, Any]]


def all_pods(rows: Rows, bounds: Mapping[str, Any], *, page: int) -> Pages:
    """All pods in the window of the bounds; a page has a number of pods."""
    return Pages(IN_WINDOW, numbered(bounds, 0, last_pod(rows), page=page))


def numbered(bounds: Mapping[str, Any], after: int, upto: int, *, page: int) -> Iterator[Mapping[str, Any]]:
    """Parameters for the pages of the pods numbered (after, upto]."""
    return ({**bounds, "after": first, "upto": min(first + page, upto)} for first in range(after, upto, page))


def segment_pages(rows: Rows, pages: Pages, own: Sequence[str], *, with_jobs: bool = False) -> Iterator[Sequence[Row]]:
    """Pages of segments: the dimensions `own`, terms, price, quantity, start, end, wait, and the names of the job.

    A page is one transaction. `wait` is how long (µs) its pod had waited, for the first segment of pods that were bound
    in the window. Without jobs, it is NULL and their names are 0.
    """
    return read_pages([rows], segments_of(pages.pods, own, with_jobs=with_jobs), iter(pages.values))


def grouped_pages(
    readers: Sequence[Rows], pages: Pages, own: Sequence[str], *, with_jobs: bool = False
) -> Iterator[Sequence[Row]]:
    """Segments added up within each page: a million segments are as many rows less to read. Read by all `readers`.

    A row has the dimensions `own`, terms, price, namespace and kind of the job, quantity, the sum of all times (µs),
    the number of waits, their sum, and the names of the jobs as JSON. Times and not GPU-time, which exceeds 64 bits.
    """
    key = ", ".join((*own, "terms", "price", "of_namespace", "of_job_kind", "quantity"))
    jobs = "json_group_array(of_job)" if with_jobs else "''"
    sql = f"""
SELECT {key}, sum(to_us - from_us), count(wait_us), ifnull(sum(wait_us), 0), {jobs}
FROM ({segments_of(pages.pods, own, with_jobs=with_jobs)})
GROUP BY {key}
"""  # noqa: S608 (dimensions only)
    return read_pages(readers, sql, iter(pages.values))
