"""The section `time_limits`: how long pods of a tier may be pending or starting before an alert."""

from collections.abc import Iterator

from gputally.config.fields import Field, value
from gputally.config.values import text
from gputally.model.rules import TimeLimit
from gputally.model.units import US_PER_DAY, US_PER_SECOND, seconds_of

_STATES = ("pending", "starting")
_SHORTEST_US = 60 * US_PER_SECOND
_LONGEST_US = 30 * US_PER_DAY


def time_limits(field: Field) -> tuple[TimeLimit, ...]:
    """Limits by tier; the first entry for a tier that has one applies."""
    return tuple(_entries(field))


def _entries(field: Field) -> Iterator[TimeLimit]:
    decided: dict[str, set[str]] = {}
    """The states of which earlier entries have a limit, by tier, "" for all tiers."""
    for entry in field.items():
        section = entry.section("tier", *_STATES)
        tier = section.read("tier", value(text), "")
        limits = {name: found for name in _STATES if (found := section.read(name, value(_duration), 0))}
        if not entry.sound:
            continue
        if not limits:
            entry.refuse("limits nothing; add pending or starting, such as `pending: 6h`")
        for name in limits.keys() & (decided.get(tier, set()) | decided.get("", set())):
            section[name].refuse("never applies, since an earlier entry decides; move it up or remove it")
        decided.setdefault(tier, set()).update(limits)
        yield TimeLimit(tier=tier, pending_us=limits.get("pending"), starting_us=limits.get("starting"))


def _duration(text: str) -> int:
    found_us = (seconds_of(text) or 0) * US_PER_SECOND
    if not _SHORTEST_US <= found_us <= _LONGEST_US:
        raise ValueError(f"{text!r} is not a duration from 1m to 720h; use one such as 10m or 6h")
    return found_us
