"""Quantities of resources as integers."""

import re
from functools import lru_cache
from typing import Final

from gputally.model.placement.needs import CPU

_UNITS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY: Final = re.compile(
    r"\+?(?P<whole>[0-9]{0,40})(?:\.(?P<part>[0-9]{0,40}))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)
MOST: Final = 2**63 - 1
"""The API server's quantities have 64 bits."""


@lru_cache(maxsize=8192)
def amount_of(resource: str, quantity: str | int) -> int:
    """CPU in millicores, all else in whole units; rounded up, as Kubernetes does, and limited to 64 bits.

    Raises: ValueError for anything else than a quantity that is not negative.
    Source: k8s.io/apimachinery pkg/api/resource/quantity.go, ParseQuantity, Value and MilliValue.
    """
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None or not (match["whole"] or match["part"]):
        raise ValueError(f"{quantity!r} is not a quantity of {resource}")
    part = match["part"] or ""
    digits = int(f"{match['whole']}{part}")
    power = int(match["exponent"] or 0) + _UNITS.get(match["suffix"] or "", 0) - len(part)
    if resource == CPU:
        power += 3
    digits <<= _BINARY.get(match["suffix"] or "", 0)
    amount: int = digits * 10**power if power >= 0 else -(-digits // 10**-power)
    return min(amount, MOST)
