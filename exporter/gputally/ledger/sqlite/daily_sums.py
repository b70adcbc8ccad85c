"""Sums of the daily rows, to which the retention rolls up what ended before.

Parameters are the window [:start, :end) and a :period.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from gputally.errors import DetailRolledUp
from gputally.ledger.measured_sums import Amounts
from gputally.ledger.records import JOB
from gputally.ledger.row_labels import OF_TERMS, POD_NAME, Key
from gputally.ledger.sqlite.dictionary import labels_of
from gputally.ledger.sqlite.rows import Row, Rows
from gputally.model.units import US_PER_SECOND, to_datetime

DETAIL_START: Final = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'detail_start_us'"


_PERIODS: Final = """
SELECT id, start_us, end_us FROM rolled_periods WHERE start_us < :end AND end_us > :start ORDER BY start_us
"""
_MEASURED: Final = ("measured", "used", "burst")
_LOST_COLUMNS: Final = 1 + 2 * (1 + len(_MEASURED))
"""Basis, and the parts of the sums of `daily_lost`."""


def expect_whole_days(rows: Rows, bounds: Mapping[str, int], by: Iterable[str], cuts: Sequence[int]) -> None:
    """Raises: DetailRolledUp if the window or one of its `cuts` divides a day of which only the sums are known."""
    periods = rows(_PERIODS, bounds)
    if not periods:
        return
    [(detail_us,)] = rows(DETAIL_START, {})
    detail = to_datetime(detail_us)
    if POD_NAME in by:
        problem = f"pods are not known before {detail:%Y-%m-%d}"
    elif (at_us := _divided(periods, (bounds["start"], *cuts, bounds["end"]))) is not None:
        problem = f"{to_datetime(at_us):%Y-%m-%d %H:%M:%S} UTC is inside a day before {detail:%Y-%m-%d}"
    else:
        return
    raise DetailRolledUp(
        f"{problem}, of which the retention left daily sums; use whole days in UTC, and neither pods, hours nor focus, "
        "or a backup from before"
    )


def daily_allocated(
    rows: Rows, bounds: Mapping[str, int], own: Sequence[str], cuts: Sequence[int], *, with_jobs: bool
) -> Iterator[tuple[Row, int, tuple[int, int, int], tuple[int, int]]]:
    """The dimensions `own`, terms, price and number of the period; the GPU-time; the names of the job; and its waits.

    Waits are the number of pods that were bound, and how long they had waited (µs). Without jobs, their names are 0.
    """
    job = [f"{each}_text" for each in JOB if with_jobs]
    key = ", ".join((*(f"{each}_text" for each in own), "terms", "nullif(price, 0)"))
    sql = f"""
    SELECT {key}, sum(seconds), sum(microseconds), sum(bound), sum(wait_us), {", ".join(job or "000")} FROM daily_rows
    WHERE period = :period AND pods > 0
    GROUP BY {", ".join((key, *job))}
    """  # noqa: S608 (dimensions only)
    for number, start_us, _ in rows(_PERIODS, bounds):
        period = bisect_right(cuts, start_us)
        for *values, seconds, rest, bound, wait_us, namespace, kind, name in rows(sql, {"period": number}):
            yield (*values, period), seconds * US_PER_SECOND + rest, (namespace, kind, name), (bound, wait_us)


def daily_measured(
    rows: Rows, bounds: Mapping[str, int], by: Sequence[str], cuts: Sequence[int]
) -> Iterator[tuple[Key, Amounts]]:
    """What was measured, by the dimensions `by`, price and period."""
    own, key = _own_key(by)
    sums = ", ".join(f"sum({each}_seconds), sum({each}_microseconds)" for each in _MEASURED)
    sql = f"SELECT {key}, {sums}, sum(energy) FROM daily_rows WHERE period = :period GROUP BY {key}"  # noqa: S608 (dimensions only)
    found: dict[Row, list[int]] = {}
    for number, start_us, _ in rows(_PERIODS, bounds):
        for row in rows(sql, {"period": number}):
            known = found.setdefault((*row[:-7], bisect_right(cuts, start_us)), [0, 0, 0, 0])
            known[:] = map(int.__add__, known, _joined(row[-7:]))
    names = labels_of(rows, own, found)
    for values, amounts in found.items():
        yield names.key(values, by), tuple(amounts)


def daily_lost(
    rows: Rows, bounds: Mapping[str, int], by: Sequence[str], cuts: Sequence[int]
) -> Iterator[tuple[tuple[Key, str], Amounts]]:
    """The lost part by the dimensions `by`, price and period, and by basis: allocated, measured, used and burst."""
    own, key = _own_key(by)
    sums = ", ".join(f"sum({each}seconds), sum({each}microseconds)" for each in ("", *(f"{m}_" for m in _MEASURED)))
    sql = f"SELECT basis, {sums}, {key} FROM daily_lost WHERE period = :period GROUP BY basis, {key}"  # noqa: S608 (dimensions only)
    found = [
        ((*row[_LOST_COLUMNS:], bisect_right(cuts, start_us)), row[0], row[1:_LOST_COLUMNS])
        for number, start_us, _ in rows(_PERIODS, bounds)
        for row in rows(sql, {"period": number})
    ]
    names = labels_of(rows, own, [values for values, *_ in found])
    for values, basis, amounts in found:
        pairs = zip(amounts[::2], amounts[1::2], strict=True)
        yield (names.key(values, by), basis), tuple(seconds * US_PER_SECOND + rest for seconds, rest in pairs)


def _own_key(by: Sequence[str]) -> tuple[list[str], str]:
    """The dimensions of pods and revisions, and the columns by which daily rows are added up."""
    own = [each for each in dict.fromkeys(by) if each not in OF_TERMS]
    return own, ", ".join((*(f"{each}_text" for each in own), "terms", "nullif(price, 0)"))


def _joined(amounts: Sequence[int]) -> Amounts:
    measured, measured_rest, used, used_rest, burst, burst_rest, energy = amounts
    return (
        measured * US_PER_SECOND + measured_rest,
        used * US_PER_SECOND + used_rest,
        burst * US_PER_SECOND + burst_rest,
        energy,
    )


def _divided(periods: Sequence[Row], instants: Iterable[Any]) -> int | None:
    """The first instant inside one of the periods."""
    starts = [start_us for _, start_us, _ in periods]
    ends = [*accumulate((end_us for *_, end_us in periods), max)]  # a day may have been divided only later
    for at_us in instants:
        place = bisect_left(starts, at_us) - 1
        if place >= 0 and at_us < ends[place]:
            return int(at_us)
    return None
