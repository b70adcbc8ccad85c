"""What a query says once Grafana has filled in its variables.

Source: Grafana docs, datasources/prometheus/template-variables: `$__rate_interval`, and how the step is found.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hack.pictures.dashboard import Panel, Target, Variable
from hack.pictures.durations import nice, seconds, written

ALL: Final = ".*"
_EVERYTHING: Final = frozenset({ALL, ".+"})
_ALL_OF_GRAFANA: Final = frozenset({"$__all", "All", ""})
_USE: Final = re.compile(
    r"\$(?P<bare>\w+)|\$\{(?P<braced>\w+)(?::(?P<form>\w+))?\}|\[\[(?P<square>\w+)(?::(?P<square_form>\w+))?\]\]"
)
_FROM_PROMETHEUS: Final = frozenset({"query", "adhoc"})
_JOINED: Final = {"csv": ",", "pipe": "|", "raw": ",", "text": " + "}

Values = Mapping[str, Sequence[str]]
"""What is chosen for each variable; `ALL` and whatever else is a regular expression is one value."""


class Window(NamedTuple):
    """The time shown, from `start` to `end`, what is between two points of it, and between two scrapes: seconds."""

    start: float
    end: float
    step: float = 30.0
    scrape: float = 30.0

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end - self.start

    @property
    def rate_interval(self) -> float:
        """Long enough for `rate()` to find four samples, and to miss none between two points."""
        return max(self.step + self.scrape, 4 * self.scrape)

    def of(self, panel: Panel, target: Target | None = None, *, width: float) -> "Window":
        """As the panel shows it, `width` pixels wide: one point a pixel at most, and no more than there are scrapes."""
        length = _seconds(panel.time_from, otherwise=self.seconds)
        scrape = _seconds(target.interval if target else "", otherwise=self.scrape)
        shortest = max(scrape, _seconds(panel.interval, otherwise=0.0))
        step = max(nice(length / (panel.max_data_points or max(width, 1.0))), shortest)
        return Window(self.end - length, self.end, step, scrape)


def _seconds(text: str, *, otherwise: float) -> float:
    # A minimum may itself be a variable, such as $__interval: then it says nothing new.
    text = text.removeprefix("now-").removeprefix(">")
    return seconds(text) if text and "$" not in text else otherwise


def chosen(variables: Iterable[Variable], given: Values) -> dict[str, Sequence[str]]:
    """The value of each variable: as `given`, else its own, and All of what Prometheus would have to be asked."""
    return {variable.name: given.get(variable.name) or [initial(variable)] for variable in variables} | dict(given)


def initial(variable: Variable) -> str:
    """What a dashboard shows first."""
    current = variable.current.get("value", "")
    one = str(current[0] if isinstance(current, list) and current else current or "")
    if variable.type in _FROM_PROMETHEUS or (variable.include_all and one in _ALL_OF_GRAFANA):
        return variable.all_value or ALL
    return one or str(variable.query).partition(",")[0].rpartition(" : ")[2].strip()  # custom ones are `Name : value`


def expand(expr: str, variables: Values, *, window: Window) -> str:
    """The query that Prometheus is asked; an unknown variable stays, so that it is refused."""
    values = _built_in(window) | dict(variables)

    def value(use: re.Match[str]) -> str:
        name = use["bare"] or use["braced"] or use["square"]
        return _formatted(values[name], use["form"] or use["square_form"] or "") if name in values else use[0]

    return _USE.sub(value, expr)


def _formatted(values: Sequence[str], form: str) -> str:
    if form in _JOINED or len(values) == 1:
        return _JOINED.get(form, "").join(values)
    return f"({'|'.join(values)})"


def _built_in(window: Window) -> dict[str, Sequence[str]]:
    milliseconds = {
        "__interval_ms": window.step,
        "__range_ms": window.seconds,
        "__rate_interval_ms": window.rate_interval,
    }
    milliseconds |= {"__from": window.start, "__to": window.end}
    texts = {
        "__interval": written(window.step),
        "__rate_interval": written(window.rate_interval),
        "__range": written(window.seconds),
        "__range_s": str(round(window.seconds)),
    }
    return {name: [text] for name, text in (texts | {n: str(round(v * 1000)) for n, v in milliseconds.items()}).items()}


def worded(text: str, variables: Values) -> str:
    """A title with its variables, where All is a word instead of a pattern."""
    named = {name: ["All" if value in _EVERYTHING else value for value in values] for name, values in variables.items()}

    def value(use: re.Match[str]) -> str:
        name = use["bare"] or use["braced"] or use["square"]
        return " + ".join(named.get(name, [use[0]]))

    return _USE.sub(value, text)
