"""Time zones by name."""

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def zone_named(name: str) -> tzinfo:
    """The time zone; UTC needs no database of zones. Raises: ValueError."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        text = f"unknown time zone '{name}'; use a name such as UTC, Europe/Berlin or America/New_York"
        raise ValueError(text) from None
