"""A Prometheus that answers what a test wrote down, and dashboards to ask it for."""

from collections.abc import Mapping
from typing import Any

import msgspec

from hack.pictures.dashboard import Dashboard, Panel
from hack.prometheus import Answer, QueryRefused, Series

START = 1_780_876_800.0  # 2026-06-08 00:00 UTC
END = START + 86_400


class ScriptedPrometheus:
    """Knows the value of each query by the labels `name=value,...` of its series: constant, over time too."""

    def __init__(self, answers: Mapping[str, Mapping[str, float]]) -> None:
        self._answers = answers
        self.asked: list[tuple[str, float, float, float]] = []

    def query(self, expression: str, *, at: float | None = None) -> Answer:
        moment = END if at is None else at
        return self.query_range(expression, start=moment, end=moment, step=1)

    def query_range(self, expression: str, *, start: float, end: float, step: float) -> Answer:
        self.asked.append((expression, start, end, step))
        try:
            found = self._answers[expression].items()
        except KeyError:
            raise QueryRefused(f"nobody wrote down {expression}") from None
        times = [start + number * step for number in range(int((end - start) / step) + 1)]
        return Answer(tuple(series(text, *((time, value) for time in times)) for text, value in found), 0.0, 0)


def series(labels: str, *points: tuple[float, float]) -> Series:
    pairs = (pair.partition("=") for pair in labels.split(",") if pair)
    return Series({name: value for name, _, value in pairs}, tuple((time, float(value)) for time, value in points))


def target(expr: str, legend: str = "__auto", **more: object) -> dict[str, Any]:
    return {"expr": expr, "legendFormat": legend, **more}


def raw_panel(kind: str, *targets: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"type": kind, "title": f"a {kind}", "targets": list(targets), **more}


def raw_dashboard(*panels: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"title": "GPUs", "time": {"from": "now-1h"}, "panels": list(panels), **more}


def dashboard(*panels: dict[str, Any], **more: object) -> Dashboard:
    return msgspec.convert(raw_dashboard(*panels, **more), Dashboard)


def panel(kind: str, *targets: dict[str, Any], **more: object) -> Panel:
    return dashboard(raw_panel(kind, *targets, **more)).panels[0]
