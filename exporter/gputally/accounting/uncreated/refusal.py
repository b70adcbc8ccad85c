"""What an Event `FailedCreate` says: whoever may create Events in a namespace chooses every character of it."""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from msgspec import Struct

from gputally.accounting.policy.quota_limits import is_gpu
from gputally.model.kube.events import Event
from gputally.model.kube.policy import LIMITS, REQUESTS
from gputally.model.needs import QuotaState
from gputally.model.rules import Rules
from gputally.model.units import to_us
from gputally.model.verdicts import Reason
from gputally.placement.resource_requests import amount_of

_MOST_MESSAGE: Final = 2048
"""Longer messages are cut off before they are read; the API server limits those of its own quotas to less."""
_MOST_TEXT: Final = 400
_FORBIDDEN: Final = re.compile(r'pods "[^"]{1,253}" is forbidden: ')
_QUOTA: Final = re.compile(
    r"exceeded quota: (?P<name>[a-z0-9.-]{1,253}), "
    r"requested: (?P<requested>\S+), used: (?P<used>\S+), limited: (?P<limited>\S+)"
)
_PREFIXES: Final = ("(combined from similar events): ", "Error creating: ")


class Refusal(Struct, frozen=True, kw_only=True, gc=False):
    """Why the API server refuses to create the pods of a workload, as its controller said last, at `at_us`.

    It said so first at `first_us`. `quota` is the one that refuses them, in devices, millicores or bytes; None if it is
    another check of admission. `text` is what the API server answered, shortened.
    """

    first_us: int
    at_us: int
    text: str
    quota: QuotaState | None


def refusal_of(event: Event, rules: Rules, *, at_us: int) -> Refusal:
    """The refusal that an Event reports; its times are `at_us`, when it was observed, at the latest."""
    times_us = [min(to_us(time), at_us) for time in _times(event)] or [at_us]
    text = _answer((event.message or "")[:_MOST_MESSAGE])
    return Refusal(first_us=min(times_us), at_us=max(times_us), text=text[:_MOST_TEXT], quota=_quota(text, rules))


def reason_of(quota: QuotaState | None) -> Reason:
    """Why pods are refused by this quota; None is another check of admission."""
    if quota is None:
        return Reason.REFUSED
    return Reason.QUOTA_NEVER if quota.needed > quota.hard else Reason.QUOTA


def _times(event: Event) -> Iterator[datetime]:
    repeated = event.series.last_observed_time if event.series else None
    for each in (event.event_time, repeated, event.first_timestamp, event.last_timestamp):
        if each:
            yield each


def _answer(message: str) -> str:
    """The answer of the API server, without the name of the pod, which is another one at each try."""
    if found := _FORBIDDEN.search(message):
        return message[found.end() :]
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    return message


def _quota(text: str, rules: Rules) -> QuotaState | None:
    """The quota that refuses the pod, with the resource that exceeds it: GPUs, if they are among several.

    Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/controller.go, CheckRequest.
    """
    found = _QUOTA.search(text)
    if found is None:
        return None
    requested, used, limited = (_quantities(found[part]) for part in ("requested", "used", "limited"))
    exceeded = [each for each in requested if each in used and each in limited]
    states = (
        _state(found["name"], key, requested[key], used[key], limited[key])
        for key in sorted(exceeded, key=lambda key: not is_gpu(key, rules))
    )
    return next((each for each in states if each), None)


def _quantities(text: str) -> dict[str, str]:
    """By resource: `requests.cpu=1,requests.nvidia.com/gpu=8`."""
    pairs = (each.partition("=") for each in text.split(","))
    return {key: amount for key, equals, amount in pairs if equals}


def _state(name: str, key: str, requested: str, used: str, limited: str) -> QuotaState | None:
    what = key.removeprefix(REQUESTS)
    measured_as = what.removeprefix(LIMITS)
    try:
        needed, taken, hard = (amount_of(measured_as, amount) for amount in (requested, used, limited))
    except ValueError:
        return None
    return QuotaState(name=name, what=what, hard=hard, used=taken, needed=needed)
