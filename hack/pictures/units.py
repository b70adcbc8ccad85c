"""Values as a person reads them, by the names that Grafana gives to units.

Times and money read as in a report (`2.3 min`, `$1,234`), where Grafana writes `2.30 mins` and `$1.23 K`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, NamedTuple

from hack.pictures.durations import DAY, HOUR, MINUTE


class Reading(NamedTuple):
    """How precise a text is to be, and the time in seconds from which `5 min ago` counts."""

    decimals: int | None = None
    digits: int = 3
    now: float = 0.0


_PLAIN: Final = Reading()

Ladder = Sequence[tuple[float, str]]
"""Factors, rising, with what is written after a value of at least that much."""
Writer = Callable[[float, Reading], str]

_COUNT: Final[Ladder] = ((1, ""), (1e3, " K"), (1e6, " Mil"), (1e9, " Bil"), (1e12, " Tri"))
_SI: Final = ((1e-9, "n"), (1e-6, "µ"), (1e-3, "m"), (1, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T"))
_BINARY: Final = tuple((1024.0**power, prefix) for power, prefix in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi")))
_TIME: Final[Ladder] = (
    *((1e-9, " ns"), (1e-6, " µs"), (1e-3, " ms"), (1, " s")),
    *((MINUTE, " min"), (HOUR, " h"), (DAY, " d"), (365 * DAY, " years")),
)
_SYMBOLS: Final = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹", "KRW": "₩"}
"""Of currencies; the others are written by their code."""
_BIG_MONEY: Final[Ladder] = ((1e6, " M"), (1e9, " B"), (1e12, " T"))
_NO_CENTS: Final = 1000
"""From here on cents do not matter."""
_SUB_CENTS: Final = 0.1
"""Below it the price of a second, say, has no whole cents."""
_SCIENTIFIC: Final = 1e-4
"""Below it, zeros after the point are no longer read at a glance."""


def show(value: float, unit: str = "", reading: Reading = _PLAIN) -> str:
    """The value with its unit; a unit that Grafana does not know stands behind it as it is."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return _writer(unit)(value, reading)


def number(value: float, reading: Reading) -> str:
    """With thousands set apart, and as many decimals as make up the digits, if any are left."""
    if reading.decimals is not None:
        return _unsigned_zero(f"{value:,.{reading.decimals}f}")
    if value == 0 or value == round(value):
        return f"{round(value):,}"
    if abs(value) < _SCIENTIFIC:
        return f"{value:.{reading.digits - 1}e}"
    decimals = max(0, reading.digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return _unsigned_zero(text.rstrip("0").rstrip(".") if "." in text else text)


def _unsigned_zero(text: str) -> str:
    return text.removeprefix("-") if not text.strip("-0.,") else text


def _after(value: float, reading: Reading, *, suffix: str, times: float = 1) -> str:
    return number(value * times, reading) + suffix


def _before(value: float, reading: Reading, *, prefix: str) -> str:
    return _prefixed(number(value, reading), prefix)


def _prefixed(text: str, prefix: str) -> str:
    return f"-{prefix}{text[1:]}" if text.startswith("-") else prefix + text


def _scaled(value: float, reading: Reading, *, ladder: Ladder, times: float = 1) -> str:
    amount = abs(value * times) * (1 + 1e-12)  # a product such as 0.06 * 1000 may lie a hair below the rung it is on
    lowest = ladder[0] if amount else next(rung for rung in ladder if rung[0] == 1)
    factor, suffix = next((rung for rung in reversed(ladder) if rung[0] <= amount), lowest)
    return number(value * times / factor, reading) + suffix


def _money(value: float, reading: Reading, *, symbol: str) -> str:
    """Cents up to a thousand; millions in short, unless the decimals were asked for."""
    if reading.decimals is not None:
        return _before(value, reading, prefix=symbol)
    if abs(value) >= _BIG_MONEY[0][0]:
        return _prefixed(_scaled(value, reading, ladder=_BIG_MONEY), symbol)
    cents = 0 if value == round(value) or abs(value) >= _NO_CENTS else 2
    return _before(value, reading if abs(value) < _SUB_CENTS else reading._replace(decimals=cents), prefix=symbol)


def _days(value: float, _: Reading) -> str:
    """The two largest parts: `1 d 2 h`."""
    rest, parts = abs(value), []
    for factor, suffix in reversed(_TIME[3:-1]):
        count, rest = divmod(rest, factor)
        if count:
            parts.append(f"{count:.0f}{suffix}")
    return ("-" if value < 0 else "") + (" ".join(parts[:2]) or "0 s")


def _instant(value: float, _: Reading) -> str:
    return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _from_now(value: float, reading: Reading) -> str:
    age = reading.now - value / 1000
    text = _scaled(abs(age), reading._replace(decimals=None, digits=2), ladder=_TIME[3:])
    return f"{text} ago" if age >= 0 else f"in {text}"


def _truth(value: float, _: Reading, *, words: tuple[str, str]) -> str:
    return words[not value]


def _rungs(prefixes: Sequence[tuple[float, str]], unit: str) -> Ladder:
    return tuple((factor, f" {prefix}{unit}") for factor, prefix in prefixes)


def _si(unit: str, times: float = 1) -> Writer:
    return partial(_scaled, ladder=_rungs(_SI, unit), times=times)


def _counted(unit: str) -> Writer:
    return partial(_scaled, ladder=tuple((factor, f"{suffix} {unit}") for factor, suffix in _COUNT))


def _time(times: float) -> Writer:
    return partial(_scaled, ladder=_TIME, times=times)


_SMALLEST_SI: Final = 3
_WRITERS: Final[Mapping[str, Writer]] = {
    **dict.fromkeys(("", "none", "string", "locale", "sishort"), number),
    "short": partial(_scaled, ladder=_COUNT),
    "percent": partial(_after, suffix=" %"),
    "percentunit": partial(_after, suffix=" %", times=100),
    **{name: _time(times) for name, times in {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60}.items()},
    "h": _time(HOUR),
    "d": _time(DAY),
    "dtdurations": _days,
    "dthms": _days,
    "clocks": _days,
    "bytes": partial(_scaled, ladder=_rungs(_BINARY, "B")),
    "decbytes": partial(_scaled, ladder=_rungs(_SI[_SMALLEST_SI:], "B")),
    "binBps": partial(_scaled, ladder=_rungs(_BINARY, "B/s")),
    "Bps": partial(_scaled, ladder=_rungs(_SI[_SMALLEST_SI:], "B/s")),
    "watt": _si("W"),
    "kwatt": _si("W", 1e3),
    "watth": _si("Wh"),
    "kwatth": _si("Wh", 1e3),
    "joule": _si("J"),
    "hertz": _si("Hz"),
    "volt": _si("V"),
    "amp": _si("A"),
    "celsius": partial(_after, suffix=" °C"),
    "fahrenheit": partial(_after, suffix=" °F"),
    "reqps": _counted("req/s"),
    "ops": _counted("ops/s"),
    "cps": _counted("c/s"),
    "iops": _counted("io/s"),
    "dateTimeFromNow": _from_now,
    **dict.fromkeys(("dateTimeAsIso", "dateTimeAsIsoNoDateIfToday", "dateTimeAsUS", "dateTimeAsSystem"), _instant),
    "bool": partial(_truth, words=("True", "False")),
    "bool_yes_no": partial(_truth, words=("Yes", "No")),
    "bool_on_off": partial(_truth, words=("On", "Off")),
}
_OWN: Final[Mapping[str, Callable[[str], Writer]]] = {
    "prefix": lambda text: partial(_before, prefix=text),
    "suffix": lambda text: partial(_after, suffix=f" {text.strip()}"),
    "currency": lambda text: partial(_money, symbol=text),
    "count": _counted,
    "si": _si,
    "time": lambda _: _instant,
}
"""Units written into the dashboard, such as `suffix:GPU-h`."""


def _writer(unit: str) -> Writer:
    kind, colon, text = unit.partition(":")
    if colon and kind in _OWN:
        return _OWN[kind](text)
    if code := unit.removeprefix("currency") if unit.startswith("currency") else "":
        return partial(_money, symbol=_SYMBOLS.get(code, f"{code} "))
    return _WRITERS.get(unit) or partial(_after, suffix=f" {unit.strip()}")
