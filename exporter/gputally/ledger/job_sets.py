"""Collects the different jobs of rows of numbers, and the waits of their pods."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import mul
from typing import Final, NamedTuple

from gputally.ledger.page_groups import Group
from gputally.ledger.records import JobSet
from gputally.ledger.row_labels import JOB_NAME, OF_TERMS, Key, Numbers, RowLabels

_SPACE: Final = 1 << 40
"""More than a storage has texts."""


class JobGroup(NamedTuple):
    """The numbers of different jobs; and how many of their pods were bound, and how long these had waited (µs)."""

    jobs: set[int]
    waits: list[int]


_ByJob = dict[int, JobGroup]
"""Groups by the name of the job; by 0 if jobs are not told apart."""


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
        self._add(self._of(row), name if self.is_by_job else 0, self._first_number(namespace, kind) + name, waits)

    def add_all(self, row: Numbers, kinds: tuple[int, int], names: Sequence[int], waits: tuple[int, int]) -> None:
        """Add jobs of one namespace and kind; only one if jobs are told apart."""
        if self.is_by_job:
            self.add(row, (*kinds, names[0]), waits)
            return
        group = self._of(row).setdefault(0, JobGroup(set(), [0, 0]))
        group.jobs.update(map(self._first_number(*kinds).__add__, names))
        group.waits[0] += waits[0]
        group.waits[1] += waits[1]

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
                found[name] = JobGroup({first + name}, [0, 0])
        for name, bound, wait_us in zip(group.jobs, group.bound, group.wait_us, strict=False):
            waits = found[name].waits
            waits[0] += bound
            waits[1] += wait_us

    def found(self, labels: RowLabels) -> Iterator[JobSet]:
        """All jobs."""
        found: dict[Key, _ByJob] = {}
        for row, by_job in self._groups.items():
            known = found.setdefault(labels.key(row, self.by), by_job)
            if known is not by_job:
                _merge(known, by_job)
        for (shared, price, period), by_job in found.items():
            named = labels.of_jobs(shared, self.by, by_job)
            for each, (jobs, waits) in zip(named, by_job.values(), strict=True):
                yield JobSet(each, price, jobs, period, *waits)

    def _of(self, row: Numbers) -> _ByJob:
        """The groups of the row: rows with the same values of `by` share them."""
        found = self._by_row.get(row)
        if found is None:
            key = (*map(mul, row[:-3], self._used), self._same_term(row[-3]), *row[-2:])
            found = self._by_row[row] = self._groups.setdefault(key, {})
        return found

    @staticmethod
    def _add(found: _ByJob, place: int, number: int, waits: tuple[int, int]) -> None:
        group = found.get(place)
        if group is None:
            found[place] = JobGroup({number}, [*waits])
        else:
            group.jobs.add(number)
            group.waits[0] += waits[0]
            group.waits[1] += waits[1]

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
    for name, (jobs, waits) in more.items():
        group = found.setdefault(name, JobGroup(set(), [0, 0]))
        group.jobs.update(jobs)
        group.waits[0] += waits[0]
        group.waits[1] += waits[1]
