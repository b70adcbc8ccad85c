"""Sums of allocated time, and the jobs among them, from rows of numbers of any storage, which are named at the end.

A row begins with the values of `SumsBy.own`, terms and price.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import mul
from typing import Final, NamedTuple

from msgspec import Struct, json

from gputally.ledger.page_groups import Group
from gputally.ledger.records import AllocatedTime, JobSet, pieces
from gputally.ledger.row_labels import JOB_NAME, OF_TERMS, Key, Meanings, Numbers, RowLabels

_SPACE: Final = 1 << 40
"""More than a storage has texts."""
_NAMES: Final = json.Decoder(list[int])


class JobGroup(Struct, gc=False):
    """The numbers of different jobs; and how many of their pods were bound, and how long these had waited (µs)."""

    jobs: set[int]
    bound: int = 0
    wait_us: int = 0

    def add(self, jobs: Iterable[int], waits: tuple[int, int]) -> None:
        """Add jobs, with how many of their pods were bound and how long they waited."""
        self.jobs.update(jobs)
        self.bound += waits[0]
        self.wait_us += waits[1]


_ByJob = dict[int, JobGroup]
"""Groups by the number of the job's name; all jobs are in one group, 0, unless labels name the job."""


class JobSets:
    """Collects jobs by the dimensions `by`. The dimensions of rows, but for the job, are `shared`."""

    def __init__(self, shared: Sequence[str], by: Sequence[str], term: Callable[[int], Mapping[str, str]]) -> None:
        self.by = by
        self.is_by_job = JOB_NAME in by
        self._used = [int(each in by) for each in shared]
        self._terms = [each for each in by if each in OF_TERMS]
        self._term = term
        self._spaces: dict[tuple[int, int], int] = {}
        self._same: dict[int, int] = {}
        self._first: dict[tuple[str, ...], int] = {}
        self._by_row: dict[Numbers, _ByJob] = {}
        self._groups: dict[Numbers, _ByJob] = {}

    def add(self, row: Numbers, names: tuple[int, int, int], waits: tuple[int, int]) -> None:
        """Add a job by the numbers of its names, with how many of its pods were bound and how long they waited."""
        namespace, kind, name = names
        number, place = self._first_number(namespace, kind) + name, name if self.is_by_job else 0
        self._of(row).setdefault(place, JobGroup(set())).add((number,), waits)

    def add_all(self, row: Numbers, kinds: tuple[int, int], names: Sequence[int], waits: tuple[int, int]) -> None:
        """Add jobs of one namespace and kind; only one job if labels name it."""
        if self.is_by_job:
            self.add(row, (*kinds, names[0]), waits)
            return
        group = self._of(row).setdefault(0, JobGroup(set()))
        group.add(map(self._first_number(*kinds).__add__, names), waits)

    def add_group(self, row: Numbers, group: Group) -> None:
        """Add the jobs of a group."""
        if not self.is_by_job:
            self.add_all(row, (group.namespace, group.kind), group.jobs, (sum(group.bound), sum(group.wait_us)))
            return
        found, first = self._of(row), self._first_number(group.namespace, group.kind)
        for name in group.jobs:
            if known := found.get(name):
                known.jobs.add(first + name)
            else:
                found[name] = JobGroup({first + name})
        for name, bound, wait_us in zip(group.jobs, group.bound, group.wait_us, strict=False):
            known = found[name]
            known.bound += bound
            known.wait_us += wait_us

    def found(self, labels: RowLabels) -> Iterator[JobSet]:
        """All jobs."""
        found: dict[Key, _ByJob] = {}
        for row, by_job in self._groups.items():
            known = found.setdefault(labels.key(row, self.by), by_job)
            if known is not by_job:
                _merge(known, by_job)
        for (shared, price, period), by_job in found.items():
            named = labels.of_jobs(shared, self.by, by_job)
            for each, group in zip(named, by_job.values(), strict=True):
                yield JobSet(each, price, group.jobs, period, group.bound, group.wait_us)

    def _of(self, row: Numbers) -> _ByJob:
        """The groups of the row: rows with the same values of `by` share them."""
        found = self._by_row.get(row)
        if found is None:
            key = (*map(mul, row[:-3], self._used), self._same_term(row[-3]), *row[-2:])
            found = self._by_row[row] = self._groups.setdefault(key, {})
        return found

    def _first_number(self, namespace: int, kind: int) -> int:
        """To which the number of a job's name is added: one number for the three."""
        return self._spaces.setdefault((namespace, kind), len(self._spaces) * _SPACE)

    def _same_term(self, term: int) -> int:
        """The first number of terms with the same values of `by`."""
        if term not in self._same:
            values = self._term(term)
            self._same[term] = self._first.setdefault(tuple(values[each] for each in self._terms), term)
        return self._same[term]


def _merge(found: _ByJob, more: Mapping[int, JobGroup]) -> None:
    for name, group in more.items():
        found.setdefault(name, JobGroup(set())).add(group.jobs, (group.bound, group.wait_us))


class SumsBy(NamedTuple):
    """The dimensions of the sums, and those of the different jobs among them; None without jobs."""

    by: Sequence[str]
    jobs_by: Sequence[str] | None = None

    @property
    def own(self) -> tuple[str, ...]:
        """The dimensions of pods and revisions, that of the job first."""
        found = (each for each in dict.fromkeys(self.by) if each not in OF_TERMS)
        return tuple(sorted(found, key=lambda each: each != JOB_NAME))


class AllocatedSums:
    """Adds up rows; `cuts` divide them into periods."""

    def __init__(self, meanings: Meanings, sums_by: SumsBy, cuts: Sequence[int]) -> None:
        self._has_job = JOB_NAME in sums_by.own
        self._shared = sums_by.own[self._has_job :]
        self._by = sums_by.by
        self._cuts = cuts
        self._meanings = meanings
        self._sums: defaultdict[Numbers, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
        """GPU-time (µs·µGPU) by the values of a row except the job, then by the job's name; 0 if labels name none."""
        self._jobs = None if sums_by.jobs_by is None else JobSets(self._shared, sums_by.jobs_by, meanings.term)

    def add(self, found: Iterable[Numbers]) -> None:
        """Add segments: quantity, start, end, wait, and the names of the job."""
        sums, jobs, cuts = self._sums, self._jobs, self._cuts
        for *values, quantity, from_us, to_us, wait_us, namespace, kind, name in found:
            job = values.pop(0) if self._has_job else 0
            for piece in pieces(from_us, to_us, cuts):
                row = (*values, piece[0])
                sums[row][job] += quantity * (piece[2] - piece[1])
                if jobs is not None:
                    jobs.add(row, (namespace, kind, name), (0, 0) if wait_us is None else (1, wait_us))
                    wait_us = None  # noqa: PLW2901 - a pod is bound in one period

    def add_grouped(self, found: Iterable[Numbers]) -> None:
        """Add sums: namespace and kind of the jobs, quantity, time, number and sum of waits, and names as JSON."""
        sums, jobs = self._sums, self._jobs
        for *values, namespace, kind, quantity, time_us, bound, wait_us, names in found:
            job = values.pop(0) if self._has_job else 0
            row = (*values, 0)
            sums[row][job] += quantity * time_us
            if jobs is not None:
                jobs.add_all(row, (namespace, kind), _NAMES.decode(names), (bound, wait_us))

    def add_groups(self, found: Iterable[Group], period: int) -> None:
        """Add the groups of one period, which know the dimensions `KEPT` of pods and revisions."""
        for group in found:
            values = {"namespace": group.namespace, "job_kind": group.kind}
            row = (*(values[each] for each in self._shared), group.terms, group.price, period)
            sums, quantity = self._sums[row], group.quantity
            if self._has_job:
                for job, time_us in zip(group.jobs, group.times, strict=True):
                    sums[job] += quantity * time_us
            else:
                sums[0] += quantity * sum(group.times)
            if self._jobs is not None:
                self._jobs.add_group(row, group)

    def add_daily(self, found: Iterable[tuple[Numbers, int, tuple[int, int, int], tuple[int, int]]]) -> None:
        """Add rows with their period, each with its sum, and the names and the waits of a job."""
        for values, gpu_time, names, waits in found:
            job, row = (values[0], values[1:]) if self._has_job else (0, values)
            self._sums[row][job] += gpu_time
            if self._jobs is not None:
                self._jobs.add(row, names, waits)

    def found(self) -> tuple[list[AllocatedTime], list[JobSet]]:
        """The sums in the order of prices and periods, and the jobs."""
        jobs = {each for sums in self._sums.values() for each in sums} if self._has_job else ()
        labels = RowLabels(self._meanings, self._shared, rows=self._sums, jobs=jobs)
        times = [
            AllocatedTime(labels=named, price=price, gpu_time=gpu_time, period=period)
            for (shared, price, period), sums in self._merged(labels)
            for named, gpu_time in zip(labels.of_jobs(shared, self._by, sums), sums.values(), strict=True)
        ]
        return times, [] if self._jobs is None else [*self._jobs.found(labels)]

    def _merged(self, labels: RowLabels) -> list[tuple[Key, defaultdict[int, int]]]:
        """The sums by job, by other labels, price and period, in the order of prices and periods."""
        found: dict[Key, defaultdict[int, int]] = {}
        for row, sums in self._sums.items():
            merged = found.setdefault(labels.key(row, self._by), sums)
            if merged is not sums:
                for job, gpu_time in sums.items():
                    merged[job] += gpu_time
        return sorted(found.items(), key=lambda each: (each[0][1].key if each[0][1] else "", each[0][2]))
