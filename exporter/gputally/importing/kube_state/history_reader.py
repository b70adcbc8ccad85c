"""Reads the series of pods in batches, and what these pods refer to."""

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Final

from gputally.accounting.facts.gpu_model import UNKNOWN
from gputally.importing.kube_state import node_scan, pod_samples, series_names
from gputally.importing.kube_state.history_scan import HistoryScan, Progress
from gputally.importing.kube_state.node_lives import MachineLife
from gputally.importing.kube_state.pod_classifier import MachineKey, PodContext, classified
from gputally.importing.kube_state.pod_samples import (
    OF_A_POD,
    TERMINAL,
    PodSamples,
    RejectedSeries,
    Sightings,
    UnusableSeries,
    expect_flag,
)
from gputally.importing.kube_state.prometheus_api import PrometheusApi, SampledSeries, TimeSpan, merged, us_of
from gputally.importing.kube_state.sampled_pod import sampled_pod
from gputally.model.kube.meta import OwnerReference
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules, TenantSource

_BATCH: Final = 100
"""Pods of one query: their UIDs are 4 KB of text."""
_LABEL_PREFIXES: Final = ("label_", "annotation_")
_SIGHTED: Final = f"{pod_samples.INFO}|{pod_samples.PHASE}|{pod_samples.DELETION}"
PodRow = PodRecord | RejectedSeries | None


class HistoryReader:
    """Reads the pods of a scan, and classifies them by `rules`; `price_labels` are the node labels of price rules."""

    def __init__(self, api: PrometheusApi, rules: Rules, price_labels: frozenset[str]) -> None:
        self._api = api
        self._rules = rules
        self._price_labels = price_labels
        self._pod_keys = set[str]()
        self._nodes = 0
        self._has_models = False
        self._resources = series_names.quoted(f"|{series_names.gpu_pattern(rules)}")

    def notes(self) -> list[str]:
        """What no series had although the rules and prices need it, and how to export it."""
        keys = {rule.key for rule in self._rules.tenants if rule.source is TenantSource.POD_LABEL} - self._pod_keys
        found = [
            f"no pod has the label {key} in kube_pod_labels, which a tenant rule reads; kube-state-metrics exports it "
            f"with --metric-labels-allowlist=pods=[{key}]"
            for key in sorted(keys)
        ]
        if self._nodes and not self._has_models:
            text = "no node has a GPU model in kube_node_labels; kube-state-metrics exports it with "
            found.append(f"{text}--metric-labels-allowlist=nodes=[nvidia.com/gpu.product]")
        return found

    async def pods(self, scan: HistoryScan, progress: Progress) -> AsyncIterator[list[PodRow]]:
        """The classified pods in batches; None for those without GPUs or never bound. Raises: PrometheusError."""
        context, number, done = PodContext(), -1, 0
        for chunk, uids in scan.batches(_BATCH):
            if chunk != number:
                context, number = await self._namespaces(scan.chunks[chunk]), chunk
            progress(f"reading pods, {done:,} of {len(scan.last_chunk):,} ...")
            found = [sampled_pod(each, self._rules) for each in await self._samples(scan, chunk, uids)]
            records = [each for each in found if isinstance(each, PodRecord)]
            await self._extend(context, records, scan, chunk)
            self._pod_keys.update(key for each in records for key, _ in each.labels)
            yield [self._row(each, context, scan) if isinstance(each, PodRecord) else each for each in found]
            done += len(uids)

    def _row(self, record: PodRecord, context: PodContext, scan: HistoryScan) -> PodRow:
        """The pod as far as its machine lasted, with its classification."""
        life = scan.nodes.of_pod(record.node, record.scheduled_us or 0)
        key = _machine(record, life)
        if (facts := context.nodes.get(key)) is None:
            offered = life.offered if life else {}
            labels = context.node_labels.get(key, {})
            facts = node_scan.sampled_node(record.node, labels, offered, self._rules, self._price_labels)
            context.nodes[key] = facts
            self._nodes += 1
            self._has_models |= facts.gpu_model != UNKNOWN
        record = classified(scan.nodes.limited(record, scan.scrapes), facts, context, self._rules)
        if lacking := next((name for name, units in record.limited or () if not units), ""):
            name = f"pod {record.namespace}/{record.name} ({record.uid})"
            return RejectedSeries(name, node_scan.CAPACITY, f"the node {record.node} never offered {lacking}")
        return record

    async def _samples(self, scan: HistoryScan, chunk: int, uids: Sequence[str]) -> list[PodSamples]:
        names, wanted = "|".join(OF_A_POD), series_names.any_of(uids)
        selector = f'{{__name__=~"{names}",uid=~{wanted},resource=~{self._resources}}}'
        until_us = us_of(scan.chunks[chunk].end_s)
        pods = {uid: PodSamples(uid=uid, until_us=until_us, is_alive=uid in scan.alive) for uid in uids}
        for each in await self._api.last(selector, scan.chunks[chunk]):
            if pod := pods.get(series_names.field(each.metric, "uid")):
                pod.series.setdefault(each.metric.get("__name__", ""), []).append(each)
        labelled = [series for pod in pods.values() for series in pod.of(pod_samples.LABELS)]
        labels = await self._newest(labelled, pod_samples.LABELS, "uid", scan.chunks[chunk])
        for uid, pod in pods.items():
            pod.labels = labels.get(uid, {})
            pod.check()
        usable = [pod for pod in pods.values() if not pod.unusable]
        await self._add_sightings(scan, chunk, [pod for pod in usable if _needs_samples(pod)])
        return list(pods.values())

    async def _add_sightings(self, scan: HistoryScan, chunk: int, pods: Sequence[PodSamples]) -> None:
        """Read all samples of the pods whose end, or the order of deletion and end, has no timestamp."""
        if not pods:
            return
        found = await self._sighted([pod.uid for pod in pods], scan.chunks[chunk])
        for pod in pods:
            try:
                pod.sightings = first = _sightings(found[pod.uid], scan, pod.uid)
                if first and _was_terminal_before(pod, first, scan.chunks[chunk]):
                    began = await self._terminal_chunk(scan, chunk, pod.uid)
                    earlier = await self._sighted([pod.uid], scan.chunks[began])
                    pod.sightings = _sightings(earlier[pod.uid], scan, pod.uid) or first
            except UnusableSeries as error:
                pod.unusable = error

    async def _sighted(self, uids: Sequence[str], chunk: TimeSpan) -> Mapping[str, list[SampledSeries]]:
        selector = f'{{__name__=~"{_SIGHTED}",uid=~{series_names.any_of(uids)},phase=~"|{"|".join(TERMINAL)}"}}'
        found: defaultdict[str, list[SampledSeries]] = defaultdict(list)
        for each in await self._api.samples(selector, chunk):
            found[series_names.field(each.metric, "uid")].append(each)
        return found

    async def _terminal_chunk(self, scan: HistoryScan, chunk: int, uid: str) -> int:
        """The first chunk at whose end the pod was terminal: it stays so until it is gone."""
        low, high = 0, chunk
        selector = f'{pod_samples.PHASE}{{uid=~{series_names.any_of([uid])},phase=~"{"|".join(TERMINAL)}"}}'
        while low < high:
            middle = (low + high) // 2
            found = await self._api.last(selector, scan.chunks[middle])
            low, high = (low, middle) if any(each.number == 1 for each in found) else (middle + 1, high)
        return low

    async def _newest(
        self, found: Iterable[SampledSeries], metric: str, key: str, chunk: TimeSpan
    ) -> dict[str, Mapping[str, str]]:
        """The newest labels by the label `key`: a label that changes makes another series."""
        kinds: defaultdict[str, dict[tuple[tuple[str, str], ...], Mapping[str, str]]] = defaultdict(dict)
        for each in found:
            kinds[series_names.field(each.metric, key)][_kubernetes_part(each)] = each.metric
        newest = {name: next(iter(variants.values())) for name, variants in kinds.items()}
        if several := [name for name, variants in kinds.items() if len(variants) > 1]:
            latest: dict[str, float] = {}
            selector = f"{metric}{{{key}=~{series_names.any_of(several)}}}"
            for each in await self._api.samples(selector, chunk):
                name, at_s = series_names.field(each.metric, key), each.values[-1][0]
                if at_s >= latest.get(name, 0.0):
                    latest[name], newest[name] = at_s, each.metric
        return newest

    async def _namespaces(self, chunk: TimeSpan) -> PodContext:
        """The labels and annotations of namespaces that tenant rules read."""
        context = PodContext()
        for source, prefix, into in (
            (TenantSource.NAMESPACE_LABEL, "label", context.namespace_labels),
            (TenantSource.NAMESPACE_ANNOTATION, "annotation", context.namespace_annotations),
        ):
            keys = {rule.key for rule in self._rules.tenants if rule.source is source}
            metric = f"kube_namespace_{prefix}s"
            found = await self._api.last(f"{metric}{{}}", chunk) if keys else []
            for name, labels in (await self._newest(found, metric, "namespace", chunk)).items():
                into[name] = series_names.kubernetes_labels(labels, keys, prefix=prefix)
        return context

    async def _extend(self, context: PodContext, records: Collection[PodRecord], scan: HistoryScan, chunk: int) -> None:
        """Add the labels of the pods' nodes, and the controllers of their ReplicaSets."""
        machines: defaultdict[TimeSpan, set[MachineKey]] = defaultdict(set)
        for record in records:
            life = scan.nodes.of_pod(record.node, record.scheduled_us or 0)
            if (key := _machine(record, life)) not in context.node_labels:
                machines[scan.span_of(record.node, life, chunk)].add(key)
        for span, keys in machines.items():
            await self._add_node_labels(context, keys, span)
        sets = {record.owner.name for record in records if record.owner and record.owner.kind == "ReplicaSet"}
        if sets:
            await self._add_controllers(context, sets, scan.chunks[chunk])

    async def _add_node_labels(self, context: PodContext, machines: Collection[MachineKey], span: TimeSpan) -> None:
        metric, names = node_scan.NODE_LABELS, {name for name, _ in machines}
        found = await self._api.last(f"{metric}{{node=~{series_names.any_of(names)}}}", span)
        newest = await self._newest(found, metric, "node", span)
        context.node_labels |= {key: newest.get(key[0], {}) for key in machines}

    async def _add_controllers(self, context: PodContext, sets: Collection[str], chunk: TimeSpan) -> None:
        for each in await self._api.last(f"kube_replicaset_owner{{replicaset=~{series_names.any_of(sets)}}}", chunk):
            kind, name = each.metric.get("owner_kind", ""), each.metric.get("owner_name", "")
            if each.metric.get("owner_is_controller") == "true" and kind and name:
                key = series_names.field(each.metric, "namespace"), series_names.field(each.metric, "replicaset")
                context.controllers[key] = OwnerReference(kind=kind, name=name, uid="", controller=True)


def _machine(record: PodRecord, life: MachineLife | None) -> MachineKey:
    return record.node, life.first_s if life else 0.0


def _kubernetes_part(series: SampledSeries) -> tuple[tuple[str, str], ...]:
    """The labels that come from the object."""
    return tuple(sorted(pair for pair in series.metric.items() if pair[0].startswith(_LABEL_PREFIXES)))


def _needs_samples(pod: PodSamples) -> bool:
    if pod.has_exact_end:
        return bool(pod.of(pod_samples.DELETION))
    return pod.phase in TERMINAL or not pod.is_alive


def _was_terminal_before(pod: PodSamples, seen: Sightings, chunk: TimeSpan) -> bool:
    """Whether a pod without a completion time may have become terminal before this part of the window."""
    if pod.has_exact_end or seen.terminal_us is None or seen.active_us is not None:
        return False
    return (pod.time_us(pod_samples.CREATED) or 0) < us_of(chunk.start_s)


def _sightings(found: Sequence[SampledSeries], scan: HistoryScan, uid: str) -> Sightings | None:
    """What the samples of a pod show; None without any. Raises: UnusableSeries."""
    by_name: defaultdict[str, list[SampledSeries]] = defaultdict(list)
    for each in found:
        by_name[each.metric.get("__name__", "")].append(each)
    seen = [at_s for at_s, _ in merged(by_name[pod_samples.INFO])]
    if not seen:
        return None
    phases = merged(by_name[pod_samples.PHASE])
    for _, value in phases:
        expect_flag(pod_samples.PHASE, value)
    terminal = next((at_s for at_s, value in phases if value == "1"), None)
    active = max((at_s for at_s in seen if terminal is not None and at_s < terminal), default=None)
    deleting = next((at_s for at_s, _ in merged(by_name[pod_samples.DELETION])), None)
    absent = scan.scrapes.next_after(scan.targets[uid], seen[-1])
    times = {"absent_us": absent, "active_us": active, "terminal_us": terminal, "deleting_us": deleting}
    return Sightings(
        seen_us=us_of(seen[-1]), **{name: None if at_s is None else us_of(at_s) for name, at_s in times.items()}
    )
