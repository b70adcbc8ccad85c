"""How a series becomes one value, and what Grafana calls that."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median, pstdev
from typing import Final, NamedTuple


class Calc(NamedTuple):
    """A function of at least one value, oldest first, and its title in legends."""

    title: str
    of: Callable[[Sequence[float]], float]


_LAST: Final = Calc("Last *", lambda values: values[-1])
_FIRST: Final = Calc("First *", lambda values: values[0])
CALCS: Final[Mapping[str, Calc]] = {
    "lastNotNull": _LAST,
    "last": _LAST._replace(title="Last"),
    "firstNotNull": _FIRST,
    "first": _FIRST._replace(title="First"),
    "mean": Calc("Mean", fmean),
    "max": Calc("Max", max),
    "min": Calc("Min", min),
    "sum": Calc("Total", sum),
    "count": Calc("Count", len),
    "median": Calc("Median", median),
    "range": Calc("Range", lambda values: max(values) - min(values)),
    "diff": Calc("Difference", lambda values: values[-1] - values[0]),
    "delta": Calc("Delta", lambda values: sum(max(after - before, 0.0) for before, after in pairwise(values))),
    "stdDev": Calc("StdDev", pstdev),
}


def calc(name: str) -> Calc:
    """The one of that name; of those not known here, and of none, the last value."""
    return CALCS.get(name, _LAST)
