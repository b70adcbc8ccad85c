"""Measures time and samples of every dashboard query over a complete window, as Grafana would run it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from hack.pictures.dashboard import Dashboard, read
from hack.pictures.frames import run
from hack.pictures.variables import Values, chosen
from hack.pictures.variables import Window as Shown
from hack.prometheus import Answer, Prometheus, QueryRefused
from labs.history.window import Window

GENERATED: Final = Path(__file__).parents[2] / "dashboards" / "generated"
ROUNDS: Final = 3
GOAL_S: Final = 1.0


class Asked(NamedTuple):
    """A query, its dashboard and panel, median time, samples read and series; or the error."""

    dashboard: str
    panel: str
    query: str
    seconds: float
    samples_read: int
    series: int
    refusal: str = ""


class QueryRecorder:
    """Forwards the queries of panels, each several times, and records the results."""

    def __init__(self, api: Prometheus, dashboard: Dashboard) -> None:
        self.panel = ""
        self.asked = list[Asked]()
        self._api = api
        self._dashboard = dashboard.title

    def query(self, expression: str, *, at: float | None = None) -> Answer:
        return self._recorded(expression, lambda: self._api.query(expression, at=at))

    def query_range(self, expression: str, *, start: float, end: float, step: float) -> Answer:
        return self._recorded(expression, lambda: self._api.query_range(expression, start=start, end=end, step=step))

    def _recorded(self, expression: str, ask: Callable[[], Answer]) -> Answer:
        origin = (self._dashboard, self.panel, expression)
        try:
            answers = [ask() for _ in range(ROUNDS)]
        except QueryRefused as refusal:
            self.asked.append(Asked(*origin, seconds=0, samples_read=0, series=0, refusal=str(refusal)))
            raise
        seconds, last = median(answer.seconds for answer in answers), answers[-1]
        self.asked.append(Asked(*origin, seconds, last.samples_read, len(last.series)))
        return last


def ask_all(api: Prometheus, window: Window, *, folder: Path = GENERATED, given: Values | None = None) -> list[Asked]:
    """Run all queries of the dashboards in `folder`, which may be absent, over the window; slowest first.

    Variables have the values in `given`, else their defaults; query variables default to All.
    """
    asked = [each for path in sorted(folder.glob("*.json")) for each in _ask(api, read(path), window, given or {})]
    return sorted(asked, key=lambda each: each.seconds, reverse=True)


def _ask(api: Prometheus, dashboard: Dashboard, window: Window, given: Values) -> list[Asked]:
    recorder = QueryRecorder(api, dashboard)
    shown = Shown(window.start_s, window.end_s, scrape=window.interval)
    variables = chosen(dashboard.templating.list, given)
    for panel in dashboard.all_panels():
        recorder.panel = panel.title
        run(panel, recorder, window=shown, variables=variables)
    return recorder.asked


def report(asked: Sequence[Asked], *, most: int = 15) -> Iterator[str]:
    """Output lines: totals, the slowest queries, and the rejected ones."""
    refused = [each for each in asked if each.refusal]
    empty = sum(not each.series for each in asked) - len(refused)
    slow = sum(each.seconds >= GOAL_S for each in asked)
    yield f"{len(asked)} queries: {slow} took {GOAL_S:g} s or more, {len(refused)} were refused, {empty} found nothing"
    for each in asked[:most]:
        yield f"{each.seconds:8.3f} s {each.samples_read:13,} samples  {each.dashboard} / {each.panel}: {each.query}"
    for each in refused:
        yield f"refused: {each.dashboard} / {each.panel}: {each.refusal}"
