"""Finds the GPU pods of a period, and in which part of it each was seen last."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from gputally.errors import PrometheusError
from gputally.importing.kube_state import pod_samples, series_names
from gputally.importing.kube_state.prometheus_api import PrometheusApi, SampledSeries, TimeSpan
from gputally.importing.kube_state.scrapes import Scrapes, ScrapeTarget, target_of
from gputally.model.rules import Rules

CHUNK_S: Final = 7200.0
"""The time of one query. Prometheus stores two hours in a block."""
_PAUSES: Final = 2
"""The window begins at the first scrape if more intervals than that are missing before it."""
Progress = Callable[[str], object]


class HistoryScan(Struct, frozen=True, kw_only=True):
    """The scraped part of the window in chunks, and the UIDs of the pods by the last chunk that has them.

    The last scrape showed those that are `alive`. `targets` are those that showed a pod in its last chunk.
    """

    window: TimeSpan
    chunks: Sequence[TimeSpan]
    last_chunk: dict[str, int]
    alive: frozenset[str]
    targets: dict[str, frozenset[ScrapeTarget]]
    scrapes: Scrapes

    def batches(self, size: int) -> Iterator[tuple[int, list[str]]]:
        """The pods by chunk, at most `size` in a batch, in a fixed order."""
        by_chunk: defaultdict[int, list[str]] = defaultdict(list)
        for uid, chunk in self.last_chunk.items():
            by_chunk[chunk].append(uid)
        for chunk, uids in sorted(by_chunk.items()):
            uids.sort()
            yield from ((chunk, uids[i : i + size]) for i in range(0, len(uids), size))


def chunks_of(window: TimeSpan) -> list[TimeSpan]:
    """The window in chunks, cut at whole multiples of their length."""
    cuts = [window.start_s]
    while (cut := (cuts[-1] // CHUNK_S + 1) * CHUNK_S) < window.end_s:
        cuts.append(cut)
    return [TimeSpan(a, b) for a, b in zip(cuts, [*cuts[1:], window.end_s], strict=True)]


async def scan_history(api: PrometheusApi, window: TimeSpan, rules: Rules, progress: Progress) -> HistoryScan | None:
    """Scan the window; None if no pod in it requests GPUs. Raises: PrometheusError."""
    selector, chunks = _selector(rules), chunks_of(window)
    last_chunk: dict[str, int] = {}
    known = set[ScrapeTarget]()
    targets: dict[str, frozenset[ScrapeTarget]] = {}
    for number, chunk in enumerate(chunks):
        progress(f"looking for GPU pods, {number + 1} of {len(chunks)} ...")
        found = _pods(await api.last(selector, chunk))
        last_chunk |= dict.fromkeys(found, number)
        targets |= found
        known.update(*found.values())
    if not last_chunk:
        return None
    scrapes = await _scrapes(api, frozenset(known), chunks)
    late_s = scrapes.first_s - window.start_s
    start_s = scrapes.first_s if late_s > _PAUSES * scrapes.interval_s else window.start_s
    alive = _pods(await api.last(selector, TimeSpan(scrapes.all_seen_s - 0.001, scrapes.last_s)))
    return HistoryScan(
        window=TimeSpan(start_s, scrapes.last_s),
        chunks=chunks,
        last_chunk=last_chunk,
        alive=frozenset(alive),
        targets=targets,
        scrapes=scrapes,
    )


def _selector(rules: Rules) -> str:
    names = f"{pod_samples.REQUESTS}|{pod_samples.INIT_REQUESTS}"
    pattern = series_names.quoted(series_names.gpu_pattern(rules))
    return f'{{__name__=~"{names}",resource=~{pattern}}}'


def _pods(found: Sequence[SampledSeries]) -> dict[str, frozenset[ScrapeTarget]]:
    """The targets of each pod, by UID."""
    targets: defaultdict[str, set[ScrapeTarget]] = defaultdict(set)
    for each in found:
        if not (uid := series_names.field(each.metric, "uid")):
            text = (
                f"{each.metric.get('__name__', '')} has no label uid; the import needs kube-state-metrics 2.0 or newer"
            )
            raise PrometheusError(text)
        targets[uid].add(target_of(each.metric))
    return {uid: frozenset(each) for uid, each in targets.items()}


async def _scrapes(api: PrometheusApi, targets: frozenset[ScrapeTarget], chunks: Sequence[TimeSpan]) -> Scrapes:
    jobs = series_names.any_of({target.job for target in targets})
    instances = series_names.any_of({target.instance for target in targets})
    up = [series for chunk in chunks for series in await api.samples(f"up{{job=~{jobs},instance=~{instances}}}", chunk)]
    if not (scrapes := Scrapes(up, targets)):
        raise PrometheusError(f"there is no series up with job={jobs}; it says when kube-state-metrics was scraped")
    return scrapes
