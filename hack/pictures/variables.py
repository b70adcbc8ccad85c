"""Expands Grafana variables in queries, and parses and formats durations.

Source: Grafana docs, datasources/prometheus/template-variables: `$__rate_interval`, and the calculation of the step.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hack.pictures.dashboard import Variable
from hack.pictures.units import DAY, HOUR, MINUTE

_UNITS: Final = {"d": DAY, "h": HOUR, "m": MINUTE, "s": 1.0}
_NICE: Final = (
    *(1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0),
    *(number * MINUTE for number in (1, 2, 5, 10, 15, 20, 30)),
    *(number * HOUR for number in (1, 2, 3, 4, 6, 12)),
    *(number * DAY for number in (1, 2, 7, 30, 90, 365)),
)
"""Step sizes in seconds; all are aligned to midnight and to full minutes."""
_USE: Final = re.compile(r"\$([a-zA-Z_]\w*)|\$\{.*?\}|\[\[.*?\]\]")

Values = Mapping[str, Sequence[str]]
"""The selected values of each variable; a regular expression, such as All, is one value."""


class Window(NamedTuple):
    """The time range from `start` to `end`, the step between points, and the scrape interval, all in seconds."""

    start: float
    end: float
    step: float = 30.0
    scrape: float = 30.0

    @property
    def seconds(self) -> float:
        """The length."""
        return self.end - self.start

    @property
    def rate_interval(self) -> float:
        """Long enough for `rate()` to see four samples, and to miss none between two points."""
        return max(self.step + self.scrape, 4 * self.scrape)

    def on(self, pixels: float, *, least: float = 0) -> "Window":
        """The window with a step of at least one pixel, one scrape interval and `least` seconds."""
        return self._replace(step=max(nice(self.seconds / pixels), self.scrape, least))


def seconds(text: str) -> float:
    """Parse `24h` or `1h30m`. Raises: ValueError."""
    if not re.fullmatch(r"(\d+[dhms])+", text):
        raise ValueError(f"{text!r} is no duration; write for example 30s, 24h or 7d")
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)(\w)", text))


def written(duration: float) -> str:
    """The duration in PromQL, in the largest unit that gives a whole number: 120 s are `2m`, 150 s are `150s`."""
    unit = next(unit for unit, length in _UNITS.items() if round(duration) % length == 0)
    return f"{duration / _UNITS[unit]:.0f}{unit}"


def nice(at_least: float) -> float:
    """The smallest round step of at least `at_least` seconds; whole years beyond the longest."""
    return next((step for step in _NICE if step >= at_least), math.ceil(at_least / _NICE[-1]) * _NICE[-1])


def chosen(variables: Iterable[Variable], given: Values) -> dict[str, Sequence[str]]:
    """The value of each variable: as `given`, else its default; query variables default to All."""
    return {variable.name: given.get(variable.name) or [_initial(variable)] for variable in variables} | dict(given)


def _initial(variable: Variable) -> str:
    first = {"query": variable.all_value, "custom": variable.current.get("value"), "datasource": "Prometheus"}
    if not (value := first[variable.type]):
        raise ValueError(f"${variable.name} has no value at first")
    return str(value)


def expand(expr: str, variables: Values, *, window: Window) -> str:
    """The query with variables expanded. Raises: ValueError for an unknown variable or syntax."""
    values: Values = {
        "__interval": [written(window.step)],
        "__interval_ms": [f"{window.step * 1000:.0f}"],
        "__rate_interval": [written(window.rate_interval)],
        "__range": [written(window.seconds)],
        **variables,
    }

    def value(use: re.Match[str]) -> str:
        if use[1] not in values:
            raise ValueError(f"{use[0]} is no variable, or written in a form that is not known")
        several = values[use[1]]
        return several[0] if len(several) == 1 else f"({'|'.join(several)})"

    return _USE.sub(value, expr)
