"""Durations as Kubernetes and Prometheus write them, in whole hours, minutes and seconds."""

import re
from typing import Final

_DURATION: Final = re.compile(r"(?=.)(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")


def duration_text(seconds: int) -> str:
    """The shortest such text, as 1h30m for 5400; "0s" for 0."""
    hours, minutes = divmod(seconds // 60, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds % 60, "s"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount) or "0s"


def seconds_of(text: str) -> int | None:
    """Seconds of a duration such as 90s, 5m or 1h30m; None if it is not one."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return 3600 * hours + 60 * minutes + seconds
