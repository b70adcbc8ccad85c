"""Durations as Prometheus and Grafana write them, and the steps a person would choose."""

import math
import re
from typing import Final

MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
UNITS: Final = {"ms": 0.001, "s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY, "y": 365 * DAY}
NICE: Final = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0),
    *(number * MINUTE for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * HOUR for number in (1, 2, 3, 4, 6, 12)),
    *(number * DAY for number in (1, 2, 7, 30, 90, 365)),
)
"""Steps in seconds, each of which starts at midnight and at a full minute."""


def seconds(text: str) -> float:
    """Of `24h`, `1h30m` or a bare number of seconds. Raises: ValueError."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not re.fullmatch(r"(\d+(ms|[smhdwy]))+", text):
        raise ValueError(f"{text!r} is no duration; write for example 30s, 24h or 7d")
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)(ms|[smhdwy])", text))


def written(duration: float) -> str:
    """In PromQL, as one whole number of the largest unit that allows it: 120 s are `2m`, 150 s are `150s`."""
    milliseconds = round(duration * 1000)
    for unit in ("d", "h", "m", "s"):
        number, rest = divmod(milliseconds, round(UNITS[unit] * 1000))
        if number and not rest:
            return f"{number}{unit}"
    return f"{milliseconds}ms"


def nice(at_least: float) -> float:
    """The smallest nice step that is no shorter; whole years beyond the longest."""
    return next((step for step in NICE if step >= at_least), math.ceil(at_least / NICE[-1]) * NICE[-1])
