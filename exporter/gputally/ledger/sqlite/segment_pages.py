"""Reads the latest segments of pods in pages, by several connections at once if they are given."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from gputally.ledger.sqlite.pod_days import IN_WINDOW
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.ledger.sqlite.segment_query import segments_of

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
