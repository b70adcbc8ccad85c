"""Resources of Kubernetes: names, and quantities such as `500m`, `1.5`, `32Gi` and `1e3`, none of them negative.

Source: k8s.io/apimachinery pkg/api/resource/quantity.go, ParseQuantity, Value and MilliValue.
"""

import re
from typing import Final

REQUESTS: Final = "requests."
"""Quotas of extended resources have this prefix. Source: k8s.io/kubernetes pkg/apis/core/helper/helpers.go."""
LIMITS: Final = "limits."
CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
PODS_KEYS: Final = (PODS, "count/pods")
"""The keys by which a ResourceQuota limits the number of pods."""
_UNITS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
MOST: Final = 2**63 - 1
"""The API server's quantities have 64 bits."""
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY: Final = re.compile(
    r"\+?(?P<whole>[0-9]{0,999})(?:\.(?P<part>[0-9]{0,999}))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)


def rounded_up(quantity: str | int, *, decimals: int = 0) -> int:
    """The quantity in units of 10^-`decimals`, rounded up as Kubernetes does.

    Raises: ValueError for anything else than a quantity that is not negative.
    """
    digits, power = _parsed(quantity)
    power += decimals
    return int(digits * 10**power if power >= 0 else -(-digits // 10**-power))


def whole(quantity: str | int) -> int:
    """The quantity if it is an integer. Raises: ValueError for others."""
    found = rounded_up(quantity)
    digits, power = _parsed(quantity)
    if power < 0 and found * 10**-power != digits:
        raise ValueError(f"{quantity!r} is not a whole number")
    return found


def _parsed(quantity: str | int) -> tuple[int, int]:
    """An integer and the power of ten by which it is multiplied."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None or not (match["whole"] or match["part"]):
        raise ValueError(f"{quantity!r} is not a quantity")
    part, suffix = match["part"] or "", match["suffix"] or ""
    digits = int(f"{match['whole']}{part}") << _BINARY.get(suffix, 0)
    return digits, int(match["exponent"] or 0) + _UNITS.get(suffix, 0) - len(part)


def resource_of(key: str) -> str:
    """The resource that a key of a ResourceQuota limits: `cpu` of `requests.cpu`; `pods` of `count/pods`."""
    return PODS if key in PODS_KEYS else key.removeprefix(REQUESTS).removeprefix(LIMITS)
