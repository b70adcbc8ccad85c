"""Finds the GPU pods of a period, and in which part of it each was seen last."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from gputally.errors import PrometheusError
from gputally.importing.kube_state import pod_samples, series_names
from gputally.importing.kube_state.node_lives import MachineLife, NodeLives
from gputally.importing.kube_state.node_scan import limits_of, node_targets, read_lives, scan_nodes
from gputally.importing.kube_state.pod_samples import RejectedSeries
from gputally.importing.kube_state.prometheus_api import PrometheusApi, SampledSeries, TimeSpan
from gputally.importing.kube_state.scrapes import Scrapes, ScrapeTarget, target_of
from gputally.model.rules import Rules

CHUNK_S: Final = 7200.0
"""The time of one query. Prometheus stores two hours in a block."""
_PAUSES: Final = 2
"""The window begins at the first scrape if more intervals than that are missing before it."""
_UID: Final = "the import needs kube-state-metrics 2.0 or newer"
Progress = Callable[[str], object]


class HistoryScan(Struct, frozen=True, kw_only=True):
    """The scraped part of the window in chunks, and the UIDs of the pods by the last chunk that has them.

    The last scrape showed those that are `alive`. `targets` are those that showed a pod in its last chunk. `nodes` are
    limits of their allocations, and `rejected` the samples of nodes that cannot be, and pods without a UID.
    """

    window: TimeSpan
    chunks: Sequence[TimeSpan]
    last_chunk: dict[str, int]
    alive: frozenset[str]
    targets: dict[str, frozenset[ScrapeTarget]]
    scrapes: Scrapes
    nodes: NodeLives
    rejected: Sequence[RejectedSeries] = ()

    def chunk_at(self, at_s: float) -> int:
        """The number of the chunk that has a sample of this time."""
        return min(bisect_left([chunk.end_s for chunk in self.chunks], at_s), len(self.chunks) - 1)

    def span_of(self, node: str, life: MachineLife | None, chunk: int) -> TimeSpan:
        """The last part of the window, up to this chunk, that has samples of a machine, without those of others.

        A machine that left before its pods did, for ever or for long, has its samples in an earlier chunk.
        """
        if life is None:
            return self.chunks[chunk]
        span = self.chunks[min(max(chunk, self.chunk_at(life.first_s)), self.chunk_at(life.seen_s))]
        for left_s, again_s in life.pauses:
            if left_s <= span.start_s and span.end_s < again_s:
                span = self.chunks[self.chunk_at(left_s)]
        others = [each for each in self.nodes.lives[node] if each is not life]
        before_s = max((each.seen_s for each in others if each.seen_s < life.first_s), default=span.start_s)
        is_last = all(each.seen_s < life.first_s for each in others)
        return TimeSpan(max(span.start_s, before_s), span.end_s if is_last else min(span.end_s, life.seen_s))

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


class _FoundPods(Struct, kw_only=True):
    """The GPU pods of the window: the last chunk that has each, and its targets there; the nodes of those `bound`.

    The last of them was bound in the chunk that starts at `began_s`, or shortly before.
    """

    last_chunk: dict[str, int] = field(default_factory=dict)
    targets: dict[str, frozenset[ScrapeTarget]] = field(default_factory=dict)
    nodes: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    known: set[ScrapeTarget] = field(default_factory=set)
    began_s: float = 0.0
    nameless: dict[str, RejectedSeries] = field(default_factory=dict)

    def add(self, found: Sequence[SampledSeries], number: int, chunk: TimeSpan) -> None:
        """The pods of a later chunk."""
        pods = self._pods(found)
        bound = {series_names.field(each.metric, "uid") for each in found if pod_samples.node_of(each.metric)}
        if bound - self.bound:
            self.began_s = chunk.start_s
        self.bound |= bound
        self.last_chunk |= dict.fromkeys(pods, number)
        self.targets |= pods
        self.known.update(*pods.values())
        self.nodes |= {node for each in found if (node := pod_samples.node_of(each.metric))}

    def _pods(self, found: Sequence[SampledSeries]) -> dict[str, frozenset[ScrapeTarget]]:
        """The targets of each pod, by UID."""
        targets: defaultdict[str, set[ScrapeTarget]] = defaultdict(set)
        for each in found:
            if uid := series_names.field(each.metric, "uid"):
                targets[uid].add(target_of(each.metric))
            else:
                name = "/".join(series_names.field(each.metric, part) for part in ("namespace", "pod"))
                series = each.metric.get("__name__", "")
                self.nameless[name] = RejectedSeries(f"pod {name}", series, f"has no label uid; {_UID}")
        return {uid: frozenset(each) for uid, each in targets.items()}


async def scan_history(api: PrometheusApi, window: TimeSpan, rules: Rules, progress: Progress) -> HistoryScan | None:
    """Scan the window; None if no pod in it requests GPUs. Raises: PrometheusError."""
    selector, chunks, pods = _selector(rules), chunks_of(window), _FoundPods()
    for number, chunk in enumerate(chunks):
        progress(f"looking for GPU pods, {number + 1} of {len(chunks)} ...")
        pods.add(await api.last(selector, chunk), number, chunk)
    if not pods.last_chunk:
        if pods.nameless:
            raise PrometheusError(f"no series of pods has a label uid; {_UID}")
        return None
    progress(f"looking for {len(pods.nodes):,} nodes ...")
    nodes = await scan_nodes(api, pods.nodes, chunks, rules)
    up = await _up(api, frozenset(pods.known).union(*nodes.targets.values()), chunks)
    if not (scrapes := Scrapes(up, pods.known)):
        jobs = series_names.any_of({target.job for target in pods.known})
        raise PrometheusError(f"there is no series up with job={jobs}; it says when kube-state-metrics was scraped")
    of_nodes = await node_targets(api, nodes, scrapes, rules)
    lives = await read_lives(api, nodes, chunks, Scrapes(up, of_nodes), rules)
    late_s = scrapes.first_s - window.start_s
    start_s = scrapes.first_s if late_s > _PAUSES * scrapes.interval_s else window.start_s
    alive = await api.last(selector, TimeSpan(scrapes.all_seen_s - 0.001, scrapes.last_s))
    return HistoryScan(
        window=TimeSpan(start_s, scrapes.last_s),
        chunks=chunks,
        last_chunk=pods.last_chunk,
        alive=frozenset(series_names.field(each.metric, "uid") for each in alive),
        targets=pods.targets,
        scrapes=scrapes,
        nodes=limits_of(lives, pods.began_s, scrapes),
        rejected=[*pods.nameless.values(), *nodes.rejected.values()],
    )


def _selector(rules: Rules) -> str:
    names = f"{pod_samples.REQUESTS}|{pod_samples.INIT_REQUESTS}"
    pattern = series_names.quoted(series_names.gpu_pattern(rules))
    return f'{{__name__=~"{names}",resource=~{pattern}}}'


async def _up(api: PrometheusApi, targets: frozenset[ScrapeTarget], chunks: Sequence[TimeSpan]) -> list[SampledSeries]:
    """All samples of `up` of these targets."""
    jobs = series_names.any_of({target.job for target in targets})
    instances = series_names.any_of({target.instance for target in targets})
    selector = f"up{{job=~{jobs},instance=~{instances}}}"
    return [series for chunk in chunks for series in await api.samples(selector, chunk)]
