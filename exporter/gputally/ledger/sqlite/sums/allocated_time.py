"""Sums of allocated time by the numbers of texts, terms and prices: three times as fast as by the texts of the views.

Rows of older schemas have their own query, on texts. Parameters are the window [:start, :end), the end of accounting
:accounted, and pods numbered (:after, :upto].
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gputally.ledger.cuts import pieces
from gputally.ledger.records import JOB
from gputally.ledger.sqlite.segment_rows import PRICE, TERMS, Row, price_of
from gputally.ledger.sqlite.sums.job_sets import JobSets
from gputally.ledger.sqlite.sums.names import Key, Names, Rows

_NUMBERED: Final = {
    "namespace": "p.namespace_text",
    "node": "r.node_text",
    "job_kind": "r.job_kind_text",
    "job": "r.job_text",
    "outcome": "ifnull(r.outcome_text, 0)",
    "job_outcome": """ifnull(
        (SELECT outcome_text FROM job_outcomes WHERE job_uid_text = p.job_uid_text), ifnull(r.outcome_text, 0)
    )""",
}
"""The dimensions of a pod or revision whose texts have numbers."""
_OF_POD: Final = {"name", "namespace", "job_outcome"}
_FROM: Final = "max(start_us, :start) AS from_us"
_TO: Final = "min(ifnull(end_us, :accounted), :end) AS to_us"
_LAST_POD: Final = "SELECT ifnull(max(id), 0) FROM pods"
_OLD: Final = "SELECT EXISTS (SELECT 1 FROM old_allocations)"

Sums = dict[Key, int]
"""GPU-time (µs·µGPU) by key."""
Jobs = dict[Key, set[int]]
"""Different jobs by key."""


class ReadPlan(NamedTuple):
    """How to divide the window: into periods by `cuts`, and its reading into transactions of `page` rows."""

    cuts: Sequence[int]
    page: int


class SumsBy(NamedTuple):
    """The dimensions of the sums, and those of the different jobs among them; None without jobs."""

    by: Sequence[str]
    jobs_by: Sequence[str] | None = None


def read_sums(rows: Rows, bounds: Mapping[str, Any], sums_by: SumsBy, plan: ReadPlan) -> tuple[Sums, Jobs]:
    """The GPU-time of all segments by dimensions, price and period; a page has a number of pods."""
    sums = _AllocatedSums(
        Names(rows, [each for each in dict.fromkeys(sums_by.by) if each not in TERMS]), sums_by, plan.cuts
    )
    [(last,)] = rows(_LAST_POD, {})
    for after in range(0, last, plan.page):
        sums.add(rows(sums.query, {**bounds, "after": after, "upto": after + plan.page}))
    found = sums.found()
    if rows(_OLD, {})[0][0]:
        sums.add_older(found, rows(_old_query(sums_by.by), bounds))
    return found, sums.jobs.found() if sums.jobs else {}


class _AllocatedSums:
    """Adds up rows by their numbers."""

    def __init__(self, names: Names, sums_by: SumsBy, cuts: Sequence[int]) -> None:
        self.jobs = None if sums_by.jobs_by is None else JobSets(names, sums_by.jobs_by)
        self.query = _query(names.own, with_jobs=self.jobs is not None)
        self._names = names
        self._wanted = sums_by
        self._cuts = cuts
        self._sums: defaultdict[Row, int] = defaultdict(int)

    def add(self, found: Iterable[Row]) -> None:
        """Add rows of the query."""
        sums, jobs, cuts = self._sums, self.jobs, self._cuts
        for *values, quantity, from_us, to_us, namespace, kind, job in found:
            for piece in pieces(from_us, to_us, cuts) if cuts else ((0, from_us, to_us),):
                row = (*values, piece[0])
                sums[row] += quantity * (piece[2] - piece[1])
                if jobs is not None:
                    jobs.add(row, namespace, kind, job)

    def found(self) -> Sums:
        """The sums by the texts of dimensions."""
        self._names.load(self._sums)
        found: defaultdict[Key, int] = defaultdict(int)
        for row, gpu_time in self._sums.items():
            found[self._names.key(row, self._wanted.by)] += gpu_time
        return dict(found)

    def add_older(self, sums: Sums, found: Iterable[Row]) -> None:
        """Add the rows of older schemas to `sums` and the jobs."""
        by, jobs_by = self._wanted.by, self._wanted.jobs_by or ()
        for row in found:
            labels, job, (*price, quantity, from_us, to_us) = (
                row[: len(by)],
                row[len(by) : len(by) + 3],
                row[len(by) + 3 :],
            )
            values = dict(zip(by, labels, strict=True))
            for piece in pieces(from_us, to_us, self._cuts):
                paid = price_of(*price) if price[0] else None
                key = labels, paid, piece.period
                sums[key] = sums.get(key, 0) + quantity * (piece.end_us - piece.start_us)
                if self.jobs is not None:
                    self.jobs.add_older((tuple(values[each] for each in jobs_by), paid, piece.period), job)


def _query(own: Sequence[str], *, with_jobs: bool) -> str:
    """Each latest segment, with the dimensions `own` and its job; SQLite takes the other columns from max()'s row."""
    inner = "".join(f"{_NUMBERED.get(each, 'p.name')} AS {each}, " for each in own)
    key = ", ".join((*own, "terms", "price", "quantity"))
    job = ", ".join(f"{_NUMBERED[each]} AS of_{each}" if with_jobs else f"0 AS of_{each}" for each in JOB)
    pods = "CROSS JOIN pods p ON p.id = s.pod" if with_jobs or _OF_POD & set(own) else ""
    return f"""
SELECT {key}, from_us, to_us, {", ".join(f"of_{each}" for each in JOB)} FROM (
    SELECT {inner}{job}, s.terms, s.price, s.quantity, max(s.number), {_FROM}, {_TO}
    FROM (
        SELECT pod, max(number), segments, node_text, job_kind_text, job_text, outcome_text
        FROM pod_revisions WHERE pod > :after AND pod <= :upto GROUP BY pod
    ) r
    CROSS JOIN pod_segments s ON s.pod = r.pod AND s.ordinal < r.segments {pods}
    GROUP BY s.pod, s.ordinal
)
WHERE from_us < to_us
"""  # noqa: S608 (dimensions only)


def _old_query(by: Sequence[str]) -> str:
    columns = ", ".join((*by, *JOB, "price_key", *PRICE, "quantity"))
    return f"""
SELECT {columns}, from_us, to_us
FROM (
    SELECT *, {_FROM}, {_TO} FROM allocation_segments WHERE pod_uid IN (
        SELECT pod_uid FROM old_allocations EXCEPT SELECT uid FROM pods
    )
)
WHERE from_us < to_us
"""  # noqa: S608 (dimensions only)
