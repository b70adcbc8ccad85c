"""Units: time is integer microseconds since the epoch (UTC), quantity integer micro-GPUs, money exact.

GPU-time is their product, an unbounded integer in µs·µGPU; 10^12 of them are one GPU-second. Durations are written as
in Prometheus, everywhere.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

US_PER_SECOND: Final = 1_000_000
US_PER_HOUR: Final = 3600 * US_PER_SECOND
US_PER_DAY: Final = 24 * US_PER_HOUR
GPU: Final = 1_000_000
"""Micro-GPUs of one whole physical GPU."""
GPU_SECOND: Final = US_PER_SECOND * GPU
GPU_HOUR: Final = 3600 * GPU_SECOND
MICRO: Final = 1_000_000
"""Progress is counted in millionths of the unit that a job states."""
PICO: Final = 10**12
"""Price rates are integers of 10^-12 currency units per GPU-hour, so sums of cost stay exact."""
COST_UNIT: Final = GPU_HOUR * PICO
"""Accumulated cost (µs·µGPU x pico-rate) of one currency unit."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SECONDS: Final = {"y": 365 * 86_400, "w": 7 * 86_400, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile("(?=.)" + "".join(f"(?:([0-9]{{1,6}}){unit})?" for unit in _SECONDS))


def to_us(instant: datetime) -> int:
    """Microseconds since the epoch of an aware `instant`; TypeError for a naive one."""
    since = instant - _EPOCH
    return (since.days * 86_400 + since.seconds) * US_PER_SECOND + since.microseconds  # twice as fast as a division


def dated_us(instant: datetime | None, at_us: int) -> int:
    """The time that an object states which was observed at `at_us`: no later, as clocks differ; `at_us` without one."""
    return min(to_us(instant), at_us) if instant else at_us


def to_datetime(us: int) -> datetime:
    """The UTC instant `us` microseconds after the epoch."""
    return _EPOCH + us * _MICROSECOND


def duration_text(seconds: int) -> str:
    """The shortest such text, as 1h30m for 5400; "0s" for 0."""
    hours, minutes = divmod(seconds // 60, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds % 60, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"


def seconds_of(text: str) -> int | None:
    """Seconds of a duration such as 90s, 1h30m or 7d; None if it is not one. A day has 24 hours, a year 365 days.

    Source: prometheus/common model/time.go, ParseDuration, without its milliseconds.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    return sum(int(count or 0) * seconds for count, seconds in zip(match.groups(), _SECONDS.values(), strict=True))
