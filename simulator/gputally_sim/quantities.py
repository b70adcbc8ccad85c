"""Quantities of resources as integers. Source: k8s.io/apimachinery pkg/api/resource/quantity.go."""

import re
from fractions import Fraction
from math import ceil
from typing import Final

CPU: Final = "cpu"
_QUANTITY: Final = re.compile(r"(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(m|k|[KMGTPE]i?)?")
_DECIMAL: Final = {"m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def amount_of(resource: str, quantity: str | int) -> int:
    """CPU in thousandths, all else in whole units, rounded up; 0 for a quantity that is not readable."""
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return 0
    number, suffix = Fraction(match[1]), match[2] or ""
    scale = Fraction(2) ** _BINARY[suffix] if suffix in _BINARY else Fraction(10) ** _DECIMAL.get(suffix, 0)
    return ceil(number * scale * (1000 if resource == CPU else 1))
