"""A Prometheus with given samples, which understands the queries of `gputally import`."""

import asyncio
import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Final

from aiohttp import web

from gputally.importing.kube_state.prometheus_api import PrometheusAccess, PrometheusApi, SampledSeries
from tests.prometheus.receiver import listening

_QUERY: Final = re.compile(r"(?P<last>last_over_time\()?(?P<name>\w*)\{(?P<matchers>.*)\}\[(?P<ms>\d+)ms\]\)?")
_MATCHER: Final = re.compile(r'(\w+)(=~|!=|=)"((?:[^"\\]|\\.)*)"')
_TOO_MANY: Final = "query processing would load too many samples into memory in query execution"
Labels = Mapping[str, str]
_Key = frozenset[tuple[str, str]]


class FakePrometheus:
    """Serves its samples; a query of more than `most_samples` of them fails as at a real server."""

    def __init__(self, *, most_samples: int = 1 << 60) -> None:
        self.url = ""
        self.queries: list[str] = []
        self.authorizations = set[str]()
        self.most_samples = most_samples
        self.refusals = 0
        self.warnings: list[str] = []
        self._series: dict[_Key, list[tuple[float, str]]] = {}
        self._by_uid: defaultdict[str, list[_Key]] = defaultdict(list)

    def add(self, name: str, labels: Labels, samples: Iterable[tuple[float, float]]) -> None:
        """Add samples of one series, later ones last."""
        key = frozenset({"__name__": name, **labels}.items())
        if key not in self._series:
            self._series[key] = []
            self._by_uid[labels.get("uid", "")].append(key)
        self._series[key] += [(at_s, f"{value:g}" if value < 1e5 else f"{value:.0f}") for at_s, value in samples]

    def drop(self, name: str) -> None:
        """Forget all series of a metric, as relabelling does."""
        for key in [key for key in self._series if ("__name__", name) in key]:
            del self._series[key]
        for keys in self._by_uid.values():
            keys[:] = [key for key in keys if key in self._series]

    @property
    def series(self) -> list[dict[str, str]]:
        """The labels of all series, in a fixed order."""
        return sorted((dict(key) for key in self._series), key=lambda labels: sorted(labels.items()))

    def corrupt(self, labels: Labels, value: str, *, first: int = 0) -> None:
        """Overwrite the values of a series from its sample number `first` on, modulo their number."""
        samples = self._series[frozenset(labels.items())]
        for number in range(first % len(samples), len(samples)):
            samples[number] = samples[number][0], value

    def openmetrics(self) -> str:
        """All samples as text, from which promtool makes blocks; the samples of a metric follow each other."""
        lines = []
        for key, samples in sorted(self._series.items(), key=lambda each: dict(each[0])["__name__"]):
            labels = ",".join(f"{name}={json.dumps(value)}" for name, value in sorted(key) if name != "__name__")
            lines += [f"{dict(key)['__name__']}{{{labels}}} {value} {at_s}" for at_s, value in samples]
        return "\n".join([*lines, "# EOF", ""])

    async def answer(self, request: web.Request) -> web.Response:
        """One query."""
        form = await request.post()
        query = str(form["query"])
        self.queries.append(query)
        self.authorizations.add(request.headers.get("Authorization", ""))
        found, is_last = self.selected(query, float(str(form["time"])))
        if sum(map(len, found.values())) > self.most_samples:
            self.refusals += 1
            error = {"status": "error", "errorType": "execution", "error": _TOO_MANY}
            return web.json_response(error, status=422)
        if is_last:
            parts: list[dict[str, object]] = [{"value": samples[-1]} for samples in found.values()]
        else:
            parts = [{"values": samples} for samples in found.values()]
        result = [{"metric": dict(key)} | part for key, part in zip(found, parts, strict=True)]
        data = {"resultType": "vector" if is_last else "matrix", "result": result}
        more = {"warnings": self.warnings} if self.warnings else {}
        return web.json_response({"status": "success", "data": data, **more})

    def selected(self, query: str, end_s: float) -> tuple[dict[_Key, list[tuple[float, str]]], bool]:
        """The samples that a query reads, by series, and whether it wants only the last of them."""
        parsed = _QUERY.fullmatch(query)
        assert parsed, query
        matchers = [(name, kind, _unescaped(value)) for name, kind, value in _MATCHER.findall(parsed["matchers"])]
        if parsed["name"]:
            matchers.append(("__name__", "=", parsed["name"]))
        return self._selected(matchers, end_s - int(parsed["ms"]) / 1000, end_s), bool(parsed["last"])

    def _selected(
        self, matchers: list[tuple[str, str, str]], start_s: float, end_s: float
    ) -> dict[_Key, list[tuple[float, str]]]:
        """Series with samples in (start_s, end_s]."""
        uids = next((value.split("|") for name, _, value in matchers if name == "uid"), None)
        keys = self._series if uids is None else [key for uid in uids for key in self._by_uid.get(uid, ())]
        found = {}
        for key in keys:
            labels = dict(key)
            if all(_matches(labels.get(name, ""), kind, value) for name, kind, value in matchers):
                samples = self._series[key]
                first, end = (bisect_right(samples, (at_s, "~")) for at_s in (start_s, end_s))
                if first < end:
                    found[key] = samples[first:end]
        return found


def _matches(value: str, kind: str, wanted: str) -> bool:
    if kind == "=~":
        return re.fullmatch(wanted, value) is not None
    return (value == wanted) is (kind == "=")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


class DirectApi(PrometheusApi):
    """Answers without HTTP."""

    def __init__(self, history: FakePrometheus) -> None:
        self._history = history
        self._access = PrometheusAccess(url="http://fake")
        self.warnings = set()

    async def _query(self, query: str, at_s: float) -> list[SampledSeries]:
        found, is_last = self._history.selected(query, at_s)
        if is_last:
            return [SampledSeries(metric=dict(key), value=samples[-1]) for key, samples in found.items()]
        return [SampledSeries(metric=dict(key), values=samples) for key, samples in found.items()]


@contextmanager
def serving_history(history: FakePrometheus) -> Iterator[str]:
    """The URL at which it answers, from a thread: commands have an event loop of their own."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    application = web.Application(client_max_size=1 << 24)
    application.router.add_post("/api/v1/query", history.answer)
    server = listening(application)
    try:
        history.url = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
        yield history.url
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
