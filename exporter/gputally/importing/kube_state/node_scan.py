"""Finds the nodes of GPU pods: their facts, and when they were there, to the scrape where one came or went."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct, field

from gputally.accounting.facts import gpu_model
from gputally.accounting.nodes import purchase
from gputally.accounting.nodes.facts import observed
from gputally.accounting.nodes.labels import INSTANCE_TYPE
from gputally.importing.kube_state import pod_samples, series_names
from gputally.importing.kube_state.node_lives import MachineLife, NodeLives, NodeSample, lives_of
from gputally.importing.kube_state.pod_samples import RejectedSeries, UnusableSeries
from gputally.importing.kube_state.prometheus_api import PrometheusApi, SampledSeries, TimeSpan
from gputally.importing.kube_state.scrapes import Scrapes, ScrapeTarget, target_of
from gputally.model.kube.meta import AnnotatedMeta
from gputally.model.kube.nodes import Node, NodeStatus
from gputally.model.node_record import NodeFacts, NodeRecord
from gputally.model.rules import Rules
from gputally.shares import gfd, gke
from gputally.shares.label_conflicts import COUNTS

NODE_LABELS: Final = "kube_node_labels"
CAPACITY: Final = "kube_node_status_capacity"
_KEYS: Final = frozenset(
    {
        INSTANCE_TYPE,
        gfd.MEMORY,
        gfd.STRATEGY,
        gke.CLIENTS,
        gke.PARTITION,
        *COUNTS,
        *gpu_model.LABELS,
        *purchase.LABELS,
    }
)
CREATED: Final = "kube_node_created"
INFO: Final = "kube_node_info"
_MACHINE: Final = "system_uuid"
_Found = Mapping[str, list[NodeSample]]


def sampled_node(
    name: str, labels: Mapping[str, str], offered: Mapping[str, int], rules: Rules, price_labels: frozenset[str]
) -> NodeFacts:
    """The facts that follow from `kube_node_labels` and the units of each resource that the machine `offered`."""
    replicas = (f"{resource.removesuffix('.shared')}{gfd.REPLICAS}" for resource in offered)
    keys = {*_KEYS, *rules.pool_labels, *price_labels, *replicas}
    found = series_names.kubernetes_labels(labels, keys)
    units = dict[str, str | int](offered)
    node = Node(metadata=AnnotatedMeta(name=name, labels=found), status=NodeStatus(capacity=units, allocatable=units))
    record = NodeRecord(uid="", name=name, created_us=0)
    record = observed(record, node, rules=rules, price_labels=price_labels, at_us=0, since_us=0)
    return record.facts[-1][1]


class NodeScan(Struct, kw_only=True):
    """The samples of nodes: the `last` of each by chunk, and `every` one of the chunks that `_changes` names."""

    last: dict[str, dict[int, list[NodeSample]]] = field(default_factory=dict)
    every: dict[int, dict[str, list[NodeSample]]] = field(default_factory=dict)
    targets: dict[str, set[ScrapeTarget]] = field(default_factory=dict)
    rejected: dict[str, RejectedSeries] = field(default_factory=dict)


async def scan_nodes(api: PrometheusApi, nodes: Collection[str], chunks: Sequence[TimeSpan], rules: Rules) -> NodeScan:
    """The last sample of each of the `nodes` in each chunk. Raises: PrometheusError."""
    scan, selector = NodeScan(), _selector(nodes, rules)
    for number, chunk in enumerate(chunks):
        found = await api.last(selector, chunk)
        for each in found:
            scan.targets.setdefault(pod_samples.node_of(each.metric), set()).add(target_of(each.metric))
        for node, samples in _by_node(found, chunk.end_s, rules, scan).items():
            scan.last.setdefault(node, {})[number] = samples
    return scan


async def node_targets(api: PrometheusApi, scan: NodeScan, scrapes: Scrapes, rules: Rules) -> frozenset[ScrapeTarget]:
    """The targets that show nodes: one of the `scrapes` of pods may only show nodes that were not scanned.

    So does a kube-state-metrics that moved because its node, the only one with GPUs, left. Raises: PrometheusError.
    """
    found = frozenset[ScrapeTarget]().union(*scan.targets.values())
    unknown = {target: last_s for target, last_s in scrapes.lasts.items() if target not in found}
    for target, last_s in sorted(unknown.items()) if found else ():
        shown = await api.last(_selector((), rules, target), TimeSpan(last_s - 0.001, last_s))
        found |= {target} if shown else frozenset()
    return found


async def read_lives(
    api: PrometheusApi, scan: NodeScan, chunks: Sequence[TimeSpan], scrapes: Scrapes, rules: Rules
) -> dict[str, list[MachineLife]]:
    """The lives of all nodes that were scanned; `scrapes` are those of their targets. Raises: PrometheusError."""
    if not scan.last:
        return {}
    at_end = TimeSpan(scrapes.all_seen_s - 0.001, scrapes.last_s)
    there = {pod_samples.node_of(each.metric) for each in await api.last(_selector(scan.last, rules), at_end)}
    wanted: defaultdict[int, set[str]] = defaultdict(set)
    for node, rows in scan.last.items():
        for number in _changes(rows, chunks, is_there=node in there):
            wanted[number].add(node)
    for number, nodes in sorted(wanted.items()):
        is_known = all(each.created_s is not None for node in nodes for each in scan.last[node][number])
        found = await api.samples(_selector(nodes if is_known else (), rules), chunks[number])
        scan.every[number] = _timelines(found, rules, scan)
    shown_s = sorted({each.at_s for nodes in scan.every.values() for samples in nodes.values() for each in samples})
    lives = {node: lives_of(_samples(scan, node), shown_s) for node in scan.last}
    for node, found_lives in lives.items():
        for life in found_lives[: -1 if node in there else None]:
            life.absent_s = scrapes.next_after(scan.targets[node], life.seen_s)
    return lives


def limits_of(lives: Mapping[str, Sequence[MachineLife]], pods_began_s: float, scrapes: Scrapes) -> NodeLives:
    """The lives, unlimited if the last nodes vanished together although pods began until `pods_began_s`.

    Then kube-state-metrics no longer exported nodes: new pods need a node.
    """
    found = NodeLives(lives={node: list(each) for node, each in lives.items()}, first_s=scrapes.first_s)
    lasts = [each[-1] for each in found.lives.values()]
    last_s = max((life.seen_s for life in lasts), default=0.0)
    if last_s < pods_began_s and all(life.absent_s is not None for life in lasts):
        found.unlimited_s = last_s
        for life in lasts:
            if life.seen_s > last_s - max(scrapes.interval_s, 1.0):
                life.absent_s = None
    return found


def _selector(nodes: Collection[str], rules: Rules, target: ScrapeTarget | None = None) -> str:
    """The series of these nodes, or of all: without times of creation, it counts that others were shown."""
    names, resources = f"{CREATED}|{INFO}|{CAPACITY}", series_names.quoted(f"|{series_names.gpu_pattern(rules)}")
    which = f",node=~{series_names.any_of(nodes)}" if nodes else ""
    if target:
        which += "".join(f",{name}=~{series_names.any_of([value])}" for name, value in target._asdict().items())
    return f'{{__name__=~"{names}"{which},resource=~{resources}}}'


def _changes(rows: Mapping[int, Sequence[NodeSample]], chunks: Sequence[TimeSpan], *, is_there: bool) -> set[int]:
    """The chunks of which all samples are needed: where the node came, went, or may be another machine."""
    numbers = sorted(rows)
    found = {number for number in numbers if len(rows[number]) > 1 or rows[number][0].created_s is None}
    found |= {here for here, later in pairwise(numbers) if later != here + 1}
    for here, later in pairwise(numbers):
        if rows[here][-1][1:3] != rows[later][-1][1:3]:
            found |= {here, later}
    if (rows[numbers[0]][0].created_s or 0) > chunks[numbers[0]].start_s:
        found.add(numbers[0])
    return found if is_there else found | {numbers[-1]}


def _samples(scan: NodeScan, node: str) -> Iterable[NodeSample]:
    for number, samples in sorted(scan.last[node].items()):
        yield from scan.every.get(number, {}).get(node) or samples


def _by_node(found: Iterable[SampledSeries], at_s: float, rules: Rules, scan: NodeScan) -> _Found:
    """The last sample of each node: several if a label changed, or several targets differ."""
    series: defaultdict[str, list[SampledSeries]] = defaultdict(list)
    for each in found:
        series[pod_samples.node_of(each.metric)].append(each)
    return {node: _alternatives(each, at_s, rules, scan) for node, each in series.items()}


def _alternatives(found: Iterable[SampledSeries], at_s: float, rules: Rules, scan: NodeScan) -> list[NodeSample]:
    created, machines, offered = set[float](), set[str](), dict[str, int]()
    for each in found:
        sample = _sample(each, at_s, each.text, rules, scan)
        created |= set() if sample.created_s is None else {sample.created_s}
        machines |= {sample.machine} if sample.machine else set()
        for name, amount in sample.offered:
            offered[name] = max(amount, offered.get(name, 0))
    first = NodeSample(at_s, min(created, default=None), min(machines, default=""), tuple(offered.items()))
    last = NodeSample(at_s, max(created, default=None), max(machines, default=""), tuple(offered.items()))
    return [first] if first == last else [first, last]


def _timelines(found: Iterable[SampledSeries], rules: Rules, scan: NodeScan) -> dict[str, list[NodeSample]]:
    """All samples of each node by time, each with what the series have at that time."""
    merged: defaultdict[str, dict[float, NodeSample]] = defaultdict(dict)
    for series in found:
        node = merged[pod_samples.node_of(series.metric)]
        for at_s, text in series.values:
            known, new = node.get(at_s, NodeSample(at_s)), _sample(series, at_s, text, rules, scan)
            created_s = known.created_s if new.created_s is None else new.created_s
            node[at_s] = NodeSample(at_s, created_s, known.machine or new.machine, (*known.offered, *new.offered))
    return {node: [samples[at_s] for at_s in sorted(samples)] for node, samples in merged.items()}


def _sample(series: SampledSeries, at_s: float, text: str, rules: Rules, scan: NodeScan) -> NodeSample:
    """One series at one time; a value that cannot be is rejected, and the node goes on without it."""
    name, node = series.metric.get("__name__", ""), pod_samples.node_of(series.metric)
    try:
        if name == CREATED:
            return NodeSample(at_s, created_s=pod_samples.seconds_of(name, text))
        if name == CAPACITY and (resource := series_names.resource_named(series.metric.get("resource", ""), rules)):
            return NodeSample(at_s, offered=((resource, pod_samples.amount_of(name, text)),))
    except UnusableSeries as error:
        scan.rejected[f"{node} {name}"] = RejectedSeries(f"node {node}", name, str(error))
    return NodeSample(at_s, machine=series.metric.get(_MACHINE, "") if name == INFO else "")
