"""The jobs of a window: which of them differ, and the progress that they reached."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import mul
from typing import Any, Final, NamedTuple

from gputally.ledger.records import JobSet, ReachedProgress
from gputally.ledger.sqlite.dictionary import TERMS, Names
from gputally.ledger.sqlite.rows import Key, Row

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
