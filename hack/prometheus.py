"""A Prometheus API client that reports the cost of each query."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple


class Series(NamedTuple):
    """One series of a result; `points` are (time in seconds, value). An instant query returns one point."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float:
        """The newest value."""
        return self.points[-1][1]


class Answer(NamedTuple):
    """The result of a query, its wall time, and the number of samples the server read."""

    series: tuple[Series, ...]
    seconds: float
    samples_read: int

    @property
    def value(self) -> float:
        """The value of a result with exactly one series. Raises: ValueError otherwise."""
        [only] = self.series
        return only.last

    def by(self, *labels: str) -> dict[tuple[str, ...], float]:
        """The newest value of each series, by these labels. Raises: ValueError if they do not identify each series."""
        found = {tuple(each.labels.get(label, "") for label in labels): each.last for each in self.series}
        if len(found) != len(self.series):
            raise ValueError(f"{', '.join(labels)} do not tell apart the {len(self.series)} series")
        return found


class QueryRefused(Exception):
    """The error that the server returned."""


class Prometheus:
    """The HTTP API of the server at `url`. Source: Prometheus docs querying/api.md."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def query(self, expression: str, *, at: float | None = None) -> Answer:
        """The value of `expression` at the time `at` (seconds), or now. Raises: QueryRefused."""
        moment = {} if at is None else {"time": at}
        return self._ask("query", {"query": expression, **moment})

    def query_range(self, expression: str, *, start: float, end: float, step: float) -> Answer:
        """Its values from `start` to `end`, `step` seconds apart. Raises: QueryRefused."""
        return self._ask("query_range", {"query": expression, "start": start, "end": end, "step": step})

    def get(self, path: str, parameters: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 - JSON
        """The `data` of `/api/v1/PATH`, such as `rules`, `alerts` or `targets`. Raises: QueryRefused."""
        query = urllib.parse.urlencode(parameters or {})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}") as response:  # noqa: S310 - http is given
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise QueryRefused(f"{query}: {error.read().decode(errors='replace')}") from None

    def _ask(self, path: str, parameters: Mapping[str, object]) -> Answer:
        started = time.perf_counter()
        data = self.get(path, {**parameters, "stats": "all"})
        seconds = time.perf_counter() - started
        if data["resultType"] == "scalar":
            series: tuple[Series, ...] = (Series({}, (_point(data["result"]),)),)
        else:
            series = tuple(_series(each) for each in data["result"])
        return Answer(series, seconds, data["stats"]["samples"]["totalQueryableSamples"])


def _series(found: Mapping[str, Any]) -> Series:
    points = found["values"] if "values" in found else [found["value"]]
    return Series(found["metric"], tuple(map(_point, points)))


def _point(pair: tuple[float, str]) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])
