"""A partial gang in words."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from gputally.model.api.pending import GangEntry
from gputally.model.partial_gangs import NotCompared
from gputally.pending_api.words.amount_words import gpu_words, listed, money
from gputally.pending_api.words.duration_words import duration

NOT_COMPARED: Final[Mapping[str, str]] = {
    NotCompared.UNKNOWN: "what it waits for is not known",
    NotCompared.LIMIT: "enough older gangs of its tenant, or of all tenants, are compared",
}


def gang_words(gang: GangEntry, currency: str, *, now: datetime) -> str:
    """How much of it is bound, since when, what that costs, and which gangs wait for it while it waits for them."""
    since = duration((now - gang.since).total_seconds())
    rate = f", {money(gang.cost_per_hour, currency)} per hour" if gang.cost_per_hour is not None else ""
    cost = f" ({money(gang.cost, currency)} so far)" if gang.cost is not None else ""
    bound = f"{gang.bound} of {gang.needed} pods of {gang.kind} {gang.namespace}/{gang.name}"
    if gang.tasks:
        bound = f"{bound} ({listed([f'task {each.name}: {each.bound} of {each.needed}' for each in gang.tasks])})"
    have = "has" if gang.bound == 1 else "have"
    others = gang.deadlocked_with
    deadlock = f"; it and {listed(others)} wait for each other: suspend one of them" if others else ""
    if not others and gang.not_compared:
        deadlock = f"; whether it is in a deadlock is not known: {NOT_COMPARED[gang.not_compared]}"
    return f"{bound} {have} been bound for {since}, holding {gpu_words(gang.gpus)}{rate}{cost}{deadlock}"
