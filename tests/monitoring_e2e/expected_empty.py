"""The queries that find nothing in the day we play, each with the reason: by dashboard, panel and letter."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from hack.pictures.variables import Window

Key = tuple[str, str, str]

_ALWAYS: Final[Mapping[Key, str]] = {
    ("fleet", "Overcommitted GPUs", "A"): "no GPU fails under its pod",
    ("pending", "Oldest inference pod", "A"): "all inference has its GPUs in the end",
    ("tenants", "Unobserved", "A"): "every end of a pod is seen",
    ("tenants", "Unpriced GPU-hours", "A"): "the price book has a price for all GPUs",
}
_SPLIT: Final = "GPU-hours and cost by day and by night"
_PIECE_S: Final = 300


def expected_empty(window: Window) -> Mapping[Key, str]:
    """Those of that window of time."""
    return {**_ALWAYS, **_by_the_clock(window)}


def _by_the_clock(window: Window) -> Mapping[Key, str]:
    """The day lasts some minutes: all of it is by day, or all of it by night."""
    ends = range(-int(-window.start // _PIECE_S) * _PIECE_S, int(window.end) + 1, _PIECE_S)
    hours = {_is_day(each) for each in ends}
    missing = [letter for day, letters in ((True, "AC"), (False, "BD")) if day not in hours for letter in letters]
    return {("tiers", _SPLIT, letter): "it was another time of the day" for letter in missing}


def _is_day(instant: float) -> bool:
    moment = datetime.fromtimestamp(instant, UTC)
    return moment.weekday() < 5 and 8 <= moment.hour < 18
