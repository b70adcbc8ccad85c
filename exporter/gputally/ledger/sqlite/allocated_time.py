"""Sums of allocated time by dimensions, prices and periods, with the jobs among them and their progress."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import mul
from typing import Any, Final, NamedTuple

from msgspec import json

from gputally.ledger.preemption_records import LostTime
from gputally.ledger.records import AllocatedTime, JobSet, MeasuredTime, ReachedProgress, pieces
from gputally.ledger.sqlite.daily_sums import daily_allocated
from gputally.ledger.sqlite.dictionary import TERMS, Names
from gputally.ledger.sqlite.rows import Key, Row, Rows
from gputally.ledger.sqlite.segment_pages import grouped_pages, segment_pages

_SPACE: Final = 1 << 40
"""More than a file has texts."""
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


class JobGroup(NamedTuple):
    """The numbers of different jobs; and how many of their pods were bound, and how long these had waited (µs)."""

    jobs: set[int]
    waits: list[int]


class JobSets:
    """Collects jobs by the dimensions `by`; those of pods and revisions in a row are `own`."""

    def __init__(self, names: Names, by: Sequence[str]) -> None:
        self._names = names
        self._by = by
        self._used = [int(each in by) for each in names.own]
        self._terms = [each for each in by if each in TERMS]
        self._spaces: dict[tuple[int, int], int] = {}
        self._same: dict[int, int] = {}
        self._first: dict[tuple[str, ...], int] = {}
        self._by_row: dict[Row, JobGroup] = {}
        self._groups: dict[Row, JobGroup] = {}

    def of(self, row: Row) -> JobGroup:
        """The group of the row, which callers add to: rows with the same values of `by` share it."""
        found = self._by_row.get(row)
        if found is None:
            group = (*map(mul, row[:-3], self._used), self._same_term(row[-3]), *row[-2:])
            found = self._by_row[row] = self._groups.get(group) or JobGroup(set(), [0, 0])
            self._groups[group] = found
        return found

    def first_number(self, namespace: int, kind: int) -> int:
        """To which the number of a job's name is added: one number for the three."""
        return self._spaces.setdefault((namespace, kind), len(self._spaces) * _SPACE)

    def found(self) -> list[JobSet]:
        """All jobs, by labels; the names are loaded."""
        found: dict[Key, JobGroup] = {}
        for row, group in self._groups.items():
            jobs, waits = found.setdefault(self._names.key(row, self._by), JobGroup(set(), [0, 0]))
            jobs |= group.jobs
            waits[:] = map(int.__add__, waits, group.waits)
        return [JobSet(*key[:2], group.jobs, key[2], *group.waits) for key, group in found.items()]

    def _same_term(self, term: int) -> int:
        """The first number of terms with the same values of `by`."""
        if term not in self._same:
            values = self._names.term(term)
            self._same[term] = self._first.setdefault(tuple(values[each] for each in self._terms), term)
        return self._same[term]


def read_progress(rows: Callable[..., list[Row]], bounds: Mapping[str, Any]) -> Iterator[ReachedProgress]:
    """The progress that was reached by the end of the bounds. Most ledgers have none, and read nothing more."""
    found = rows(_REACHED, bounds)
    earlier = set(rows(_BEGAN_BEFORE, bounds)) if found else set()
    for *job, namespace, kind, name, micro, unit in found:
        is_whole = tuple(job) not in earlier
        yield ReachedProgress(namespace=namespace, job_kind=kind, job=name, micro=micro, unit=unit, is_whole=is_whole)


Sums = dict[Key, int]
"""GPU-time (µs·µGPU) by key."""
_NUMBERS: Final = json.Decoder(list[int])


class ReadPlan(NamedTuple):
    """How to divide the window: into periods by `cuts`, and its reading into transactions of `page` rows.

    `readers` read pages at the same time, each by a connection of its own.
    """

    cuts: Sequence[int]
    page: int
    readers: Sequence[Rows] = ()


class SumsBy(NamedTuple):
    """The dimensions of the sums, and those of the different jobs among them; None without jobs."""

    by: Sequence[str]
    jobs_by: Sequence[str] | None = None


def read_sums(rows: Rows, bounds: Mapping[str, Any], sums_by: SumsBy, plan: ReadPlan) -> tuple[Sums, list[JobSet]]:
    """The GPU-time of all segments by dimensions, price and period; a page has a number of pods."""
    own = [each for each in dict.fromkeys(sums_by.by) if each not in TERMS]
    sums = _AllocatedSums(Names(rows, own), sums_by, plan.cuts)
    with_jobs = sums.jobs is not None
    if plan.cuts:
        for segments in segment_pages(rows, bounds, own, page=plan.page, with_jobs=with_jobs):
            sums.add(segments)
    else:
        readers = plan.readers or [rows]
        for groups in grouped_pages(readers, bounds, own, page=plan.page, with_jobs=with_jobs):
            sums.add_groups(groups)
    sums.add_daily(daily_allocated(rows, bounds, own, plan.cuts, with_jobs=with_jobs))
    return sums.found(), sums.jobs.found() if sums.jobs else []


class _AllocatedSums:
    """Adds up rows by their numbers."""

    def __init__(self, names: Names, sums_by: SumsBy, cuts: Sequence[int]) -> None:
        self.jobs = None if sums_by.jobs_by is None else JobSets(names, sums_by.jobs_by)
        self._names = names
        self._by = sums_by
        self._cuts = cuts
        self._sums: defaultdict[Row, int] = defaultdict(int)

    def add(self, found: Iterable[Row]) -> None:
        """Add a page of segments, which cuts may divide."""
        sums, jobs, cuts = self._sums, self.jobs, self._cuts
        for *values, quantity, from_us, to_us, wait_us, namespace, kind, job in found:
            for piece in pieces(from_us, to_us, cuts):
                row = (*values, piece[0])
                sums[row] += quantity * (piece[2] - piece[1])
                if jobs is not None:
                    group = jobs.of(row)
                    group.jobs.add(jobs.first_number(namespace, kind) + job)
                    if wait_us is not None:
                        group.waits[0] += 1
                        group.waits[1] += wait_us
                        wait_us = None  # noqa: PLW2901 - a pod is bound in one period

    def add_groups(self, found: Iterable[Row]) -> None:
        """Add a page of sums."""
        sums, jobs = self._sums, self.jobs
        for *values, namespace, kind, quantity, time_us, bound, wait_us, names in found:
            row = (*values, 0)
            sums[row] += quantity * time_us
            if jobs is not None:
                group = jobs.of(row)
                group.jobs.update(map(jobs.first_number(namespace, kind).__add__, _NUMBERS.decode(names)))
                group.waits[0] += bound
                group.waits[1] += wait_us

    def add_daily(self, found: Iterable[tuple[Row, int, Row, Row]]) -> None:
        """Add daily rows."""
        for row, gpu_time, (namespace, kind, job), waits in found:
            self._sums[row] += gpu_time
            if self.jobs is not None:
                group = self.jobs.of(row)
                group.jobs.add(self.jobs.first_number(namespace, kind) + job)
                group.waits[:] = map(int.__add__, group.waits, waits)

    def found(self) -> Sums:
        """The sums by the texts of dimensions."""
        self._names.load(self._sums)
        found: defaultdict[Key, int] = defaultdict(int)
        for row, gpu_time in self._sums.items():
            found[self._names.key(row, self._by.by)] += gpu_time
        return dict(found)


def allocated_times(sums: Sums) -> list[AllocatedTime]:
    """The sums in the order of their labels."""
    found = [
        AllocatedTime(labels=labels, price=price, gpu_time=gpu_time, period=period)
        for (labels, price, period), gpu_time in sums.items()
    ]
    return sorted(found, key=by_labels)


def by_labels(found: AllocatedTime | MeasuredTime | LostTime) -> tuple[Row, str, int]:
    """The order of sums."""
    return found.labels, found.price.key if found.price else "", found.period
