"""Formats values, by Grafana's names for the units of `monitoring.unit`.

Durations are written as `2.3 min`, where Grafana writes `2.30 mins`.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

MINUTE: Final = 60.0
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

Ladder = Sequence[tuple[float, str]]
"""Ascending factors, each with the suffix of values of at least that size."""

_COUNT: Final = ((1, ""), (1e3, " K"), (1e6, " Mil"), (1e9, " Bil"), (1e12, " Tri"))
_SI: Final = ((1e-9, " n"), (1e-6, " µ"), (1e-3, " m"), (1, " "), (1e3, " k"), (1e6, " M"), (1e9, " G"), (1e12, " T"))
_BINARY: Final = tuple((1024.0**power, f" {prefix}") for power, prefix in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi")))
_TIME: Final = (
    *((1e-9, " ns"), (1e-6, " µs"), (1e-3, " ms"), (1, " s")),
    *((MINUTE, " min"), (HOUR, " h"), (DAY, " d"), (365 * DAY, " years")),
)


def _of(ladder: Ladder, unit: str) -> Ladder:
    return tuple((factor, prefix + unit) for factor, prefix in ladder)


_LADDERS: Final[Mapping[str, Ladder]] = {
    **dict.fromkeys(("", "none"), ((1, ""),)),
    "short": _COUNT,
    "percentunit": ((0.01, " %"),),
    "celsius": ((1, " °C"),),
    "s": _TIME,
    "bytes": _of(_BINARY, "B"),
    "watt": _of(_SI, "W"),
    "watth": _of(_SI, "Wh"),
    "hertz": _of(_SI, "Hz"),
    "cps": _of(_COUNT, " c/s"),
}
_SYMBOLS: Final = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "CHF": "CHF "}
_SCIENTIFIC: Final = 1e-4
"""Smaller values use scientific notation, because many leading zeros are hard to read."""


def show(value: float, unit: str = "", *, decimals: int | None = None, digits: int = 3) -> str:
    """The value with its unit, with `decimals` if given, else with `digits` significant digits.

    Raises: ValueError for an unknown unit.
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{value:+}".title()
    if unit == "dateTimeAsIso":
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    symbol, rungs = _parts(unit)
    amount = abs(value) * (1 + 1e-12)  # a rounded quotient may be just below its factor
    lowest = rungs[0] if amount else next((rung for rung in rungs if rung[0] == 1), rungs[0])
    factor, suffix = next((rung for rung in reversed(rungs) if rung[0] <= amount), lowest)
    text = number(value / factor, decimals=decimals, digits=digits)
    return ("-" if text.startswith("-") else "") + symbol + text.removeprefix("-") + suffix


def _parts(unit: str) -> tuple[str, Ladder]:
    """The prefix and the suffixes of values in this unit."""
    kind, _, text = unit.partition(":")
    if kind == "suffix":
        return "", ((1, f" {text.strip()}"),)
    if unit in _LADDERS:
        return "", _LADDERS[unit]
    if unit.startswith("currency") and (symbol := _SYMBOLS.get(unit.removeprefix("currency"))):
        return symbol, _LADDERS[""]
    raise ValueError(f"the unit {unit!r} is not known")


def number(value: float, *, decimals: int | None = None, digits: int = 3) -> str:
    """The number with thousands separators, and with decimals up to `digits` significant digits."""
    if decimals is None:
        if value == round(value):
            return f"{round(value):,}"
        if abs(value) < _SCIENTIFIC:
            return f"{value:.{digits - 1}e}"
        text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = f"{value:,.{decimals}f}"
    return text if text.strip("-0.,") else text.removeprefix("-")
