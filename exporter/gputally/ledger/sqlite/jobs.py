"""The jobs of a window: which of them differ, and the progress that they reached."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

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


class JobSets:
    """Collects jobs by the dimensions `by`; those of pods and revisions in a row are `own`."""

    def __init__(self, names: Names, by: Sequence[str]) -> None:
        self._names = names
        self._by = by
        self._own = [each in by for each in names.own]
        self._terms = [each for each in by if each in TERMS]
        self._spaces: dict[tuple[int, int], int] = {}
        self._same_terms: dict[tuple[str, ...], int] = {}
        self._by_row: dict[Row, set[int]] = {}
        self._grouped: dict[Row, set[int]] = {}
        self.waits: defaultdict[Row, list[int]] = defaultdict(lambda: [0, 0])
        """How many pods were bound, and how long they had waited (µs), which callers add: a call would take longer."""

    def add(self, row: Row, namespace: int, kind: int, job: int) -> None:
        """Add the job with these names, by number."""
        self._jobs_of(row).add(self._first_number(namespace, kind) + job)

    def add_all(self, row: Row, namespace: int, kind: int, jobs: Iterable[int]) -> None:
        """Add many jobs of one kind in a namespace."""
        self._jobs_of(row).update(map(self._first_number(namespace, kind).__add__, jobs))

    def found(self) -> list[JobSet]:
        """All jobs, by labels; the names are loaded."""
        named: defaultdict[Key, set[int]] = defaultdict(set)
        for row, jobs in self._grouped.items():
            named[self._names.key(row, self._by)] |= jobs
        waits: defaultdict[Key, list[int]] = defaultdict(lambda: [0, 0])
        for row, own in self.waits.items():
            found = waits[self._names.key(self._group(row), self._by)]
            found[:] = map(int.__add__, found, own)
        return [JobSet(*key[:2], jobs, key[2], *waits[key]) for key, jobs in named.items()]

    def _jobs_of(self, row: Row) -> set[int]:
        """Rows with the same values of `by` share one set."""
        found = self._by_row.get(row)
        if found is None:
            found = self._by_row[row] = self._grouped.setdefault(self._group(row), set())
        return found

    def _group(self, row: Row) -> Row:
        *own, term, price, period = row
        values = self._names.term(term)
        same = self._same_terms.setdefault(tuple(values[each] for each in self._terms), term)
        return *(value if used else 0 for value, used in zip(own, self._own, strict=True)), same, price, period

    def _first_number(self, namespace: int, kind: int) -> int:
        """To which the number of a job's name is added: one number for the three."""
        return self._spaces.setdefault((namespace, kind), len(self._spaces) * _SPACE)


def read_progress(rows: Callable[..., list[Row]], bounds: Mapping[str, Any]) -> Iterator[ReachedProgress]:
    """The progress that was reached by the end of the bounds. Most ledgers have none, and read nothing more."""
    found = rows(_REACHED, bounds)
    earlier = set(rows(_BEGAN_BEFORE, bounds)) if found else set()
    for *job, namespace, kind, name, micro, unit in found:
        is_whole = tuple(job) not in earlier
        yield ReachedProgress(namespace=namespace, job_kind=kind, job=name, micro=micro, unit=unit, is_whole=is_whole)
