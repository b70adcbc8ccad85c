"""Converts API times and Go durations from and to integer microseconds (UTC)."""

import re
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNITS_US = {"h": HOUR_US, "m": MINUTE_US, "s": SECOND_US, "ms": 1000, "us": 1, "µs": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|µs|m|s)")


@lru_cache(maxsize=4096)
def rfc3339(us: int) -> str:
    """Whole seconds, truncated like metav1.Time: `2026-03-02T08:00:00Z`."""
    return f"{to_datetime(us):%Y-%m-%dT%H:%M:%SZ}"


def rfc3339_micro(us: int) -> str:
    """Microseconds, in the format of metav1.MicroTime: `2026-03-02T08:00:00.000001Z`."""
    return f"{to_datetime(us):%Y-%m-%dT%H:%M:%S.%fZ}"


def http_date(us: int) -> str:
    """The format of the `Date` header: `Mon, 02 Mar 2026 08:00:00 GMT`. Source: RFC 9110, IMF-fixdate."""
    return format_datetime(to_datetime(us), usegmt=True)


def to_datetime(us: int) -> datetime:
    """The UTC instant `us` microseconds after the epoch."""
    return _EPOCH + us * _MICROSECOND


def parse_instant(text: str) -> int:
    """Parse an RFC 3339 time to microseconds since the epoch. Raises: ValueError."""
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


def parse_duration(text: str) -> int:
    """Parse a Go duration such as `1h30m` or `1.5s` to microseconds. Raises: ValueError."""
    parts = _PART.findall(text)
    if text == "0":
        return 0
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration; use for example 1h30m or 45s")
    return sum(round(float(number) * _UNITS_US[unit]) for number, unit in parts)


def format_duration(us: int) -> str:
    """`us`, truncated to whole seconds, as a Go duration: `5400s`."""
    return f"{us // SECOND_US}s"
