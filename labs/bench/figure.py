"""Measured figures and their goals."""

import operator
from collections.abc import Sequence
from statistics import median, quantiles

from msgspec import Struct

COMPARE = {"<=": operator.le, ">=": operator.ge}
STATED_PODS = 20_000
"""The number of pods for which the goals apply."""


class Figure(Struct, frozen=True):
    """One measured value. `goal` is like `<= 10`, or ""; `peer` names another program, with its value in `peer_value`.

    If the value depends on the number of pods, the name ends with it: `start.ready_s@20000`.
    """

    name: str
    value: float
    unit: str
    goal: str = ""
    peer: str = ""
    peer_value: float | None = None

    @property
    def verdict(self) -> str:
        """`met`, `missed`, or "" without a goal."""
        if not self.goal:
            return ""
        how, limit = self.goal.split()
        return "met" if COMPARE[how](self.value, float(limit)) else "missed"


def stated(goal: str, pods: int) -> str:
    """`goal` if `pods` is the size it applies to, else ""."""
    return goal if pods == STATED_PODS else ""


def p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98]


def spread(name: str, values: Sequence[float], unit: str, *, goal: str = "") -> list[Figure]:
    """Median, 99th percentile and maximum; the goal is for the median."""
    stem, at, pods = name.partition("@")
    found = (("", median(values), goal), ("_p99", p99(values), ""), ("_max", max(values), ""))
    return [Figure(f"{stem}{suffix}{at}{pods}", value, unit, each) for suffix, value, each in found]


def shown(value: float) -> str:
    """The value with three significant digits and without an exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def line(figure: Figure) -> str:
    """The figure as one line of terminal output."""
    goal = f"goal {figure.goal}: {figure.verdict}" if figure.goal else ""
    peer = f"{figure.peer}: {shown(figure.peer_value)}" if figure.peer_value is not None else figure.peer
    return f"{figure.name:<38} {shown(figure.value):>10} {figure.unit:<10} {goal:<24} {peer}".rstrip()
