"""What a value measures, through the arithmetic of PromQL: GPU-seconds per second are GPUs."""

import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NamedTuple


class Dimension(NamedTuple):
    """Powers of base units, and how many of those one unit is: an hour is 3600 times `second`."""

    powers: tuple[tuple[str, int], ...]
    scale: Fraction = Fraction(1)

    def __str__(self) -> str:
        """As units and catalog spell it, or as a product of base units."""
        if name := _SPELLED.get(self):
            return name
        text = "·".join(base if power == 1 else f"{base}^{power}" for base, power in self.powers) or "ratio"
        return text if self.scale == 1 else f"{text} x {self.scale}"


def _made(scale: Fraction | int = 1, **powers: int) -> Dimension:
    return Dimension(tuple(sorted(powers.items())), Fraction(scale))


NUMBER: Final = _made(number=1)
"""Of a literal: whatever stands beside it."""
RATIO: Final = _made()
COUNT: Final = _made(count=1)
STATE: Final = _made(state=1)
"""0 or 1: whether something holds."""
INFO: Final = _made(info=1)
"""Always 1, for its labels."""
SECONDS: Final = _made(second=1)
MOMENT: Final = _made(moment=1)
"""Seconds since 1970."""
_MASKS: Final = (NUMBER, INFO, STATE)
"""What leaves the other factor as it is."""

_NAMED: Final[Mapping[str, Dimension]] = {
    "ratio": RATIO,
    "count": COUNT,
    "state": STATE,
    "info": INFO,
    "number": NUMBER,
    "gpus": _made(gpu=1),
    "gpu_seconds": _made(gpu=1, second=1),
    "gpu_hours": _made(3600, gpu=1, second=1),
    "seconds": SECONDS,
    "minutes": _made(60, second=1),
    "hours": _made(3600, second=1),
    "days": _made(86400, second=1),
    "timestamp_seconds": MOMENT,
    "milliseconds since 1970": _made(Fraction(1, 1000), moment=1),
    "milliseconds": _made(Fraction(1, 1000), second=1),
    "percent": _made(Fraction(1, 100)),
    "cost": _made(money=1),
    "money": _made(money=1),
    "bytes": _made(byte=1),
    "joules": _made(joule=1),
    "watts": _made(joule=1, second=-1),
    "watt_hours": _made(3600, joule=1),
    "celsius": _made(celsius=1),
    "hertz": _made(hertz=1),
}
_ENDINGS: Final = sorted((name for name in _NAMED if re.fullmatch(r"\w+", name)), key=len, reverse=True)


def named(text: str) -> Dimension:
    """`money/hour`, `gpu_hours`. Raises: KeyError for a word it does not know."""
    first, *others = text.split("/")
    found = _word(first)
    for each in others:
        found = quotient(found, _word(each))
    return found


def _word(text: str) -> Dimension:
    return _NAMED[text] if text in _NAMED else _NAMED[f"{text}s"]


def of_name(metric: str) -> Dimension:
    """The unit that the name of a metric ends in (before `_total`); without one it counts things."""
    name = metric.removesuffix("_total")
    return next((_NAMED[ending] for ending in _ENDINGS if name.endswith(f"_{ending}")), COUNT)


def product(left: Dimension, right: Dimension) -> Dimension:
    """Of `left * right`."""
    if left in _MASKS:
        return right
    return left if right in _MASKS else _combined(left, right, sign=1)


def quotient(left: Dimension, right: Dimension) -> Dimension:
    """Of `left / right`; something per thing counted is that something: an average."""
    if right in _MASKS:
        return left
    if left in _MASKS:
        left = RATIO
    return _combined(left, right, sign=-1)


def _combined(left: Dimension, right: Dimension, *, sign: int) -> Dimension:
    powers = Counter(dict(left.powers))
    for base, power in right.powers:
        powers[base] += sign * power
    others = any(power and base not in ("count", "second") for base, power in powers.items())
    powers["count"] = 0 if others else max(0, min(1, powers["count"]))
    scale = left.scale * right.scale if sign > 0 else left.scale / right.scale
    return Dimension(tuple(sorted((base, power) for base, power in powers.items() if power)), scale)


CONVERTING: Final = frozenset(map(Fraction, (60, 100, 1000, 1024, 3600, 86400)))
"""Numbers that change the unit and not what is measured: seconds times 1000 are milliseconds. Others are weights."""


def multiplied(dimension: Dimension, factor: Fraction) -> Dimension:
    """Of a value times the number `factor`."""
    return dimension._replace(scale=dimension.scale / factor) if factor in CONVERTING else dimension


def divided(dimension: Dimension, divisor: Fraction) -> Dimension:
    """Of a value divided by the number `divisor`."""
    return dimension._replace(scale=dimension.scale * divisor) if divisor in CONVERTING else dimension


def added(left: Dimension, right: Dimension) -> Dimension | None:
    """Of `left + right`; nothing when they do not add up."""
    if left == NUMBER or right in (NUMBER, left):
        return right if left == NUMBER else left
    return MOMENT if {left, right} == {MOMENT, SECONDS} else None


def subtracted(left: Dimension, right: Dimension) -> Dimension | None:
    """Of `left - right`; between two moments lie seconds."""
    if left == right == MOMENT:
        return SECONDS
    if (left, right) == (MOMENT, SECONDS):
        return MOMENT
    return None if MOMENT in (left, right) and NUMBER not in (left, right) else added(left, right)


def per_second(dimension: Dimension) -> Dimension:
    """Of the rate of what has that dimension."""
    return quotient(dimension, SECONDS)


_SPELLED: Final = {
    **{named(text): text for text in ("money/second", "money/hour", "money/gpu_hour", "count/second", "count/hour")},
    **{dimension: name for name, dimension in _NAMED.items()},
}
