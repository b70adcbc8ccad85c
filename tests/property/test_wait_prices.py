"""A wait costs what the same pod would cost on the nodes that it selects, whatever the price book matches on."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Final, NamedTuple
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.accounting.prices.book import Criterion, DatedPrice, PriceBook, PriceRule, Trait
from gputally.model.kube.kinds import Kind
from gputally.model.kube.pods import Pod
from gputally.model.kube.workloads import Job
from gputally.model.price import Basis
from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.model.waits import PendingSegment, UncreatedPodsSegment
from tests.core.manifests import Json, NodeForm, PodForm, as_pod, us
from tests.core.refusals import parallel_job
from tests.core.replay import Replay
from tests.property.examples import examples

TYPE: Final = "node.kubernetes.io/instance-type"
POOL: Final = "pool"
PRODUCT: Final = "nvidia.com/gpu.product"
MODELS: Final = (PRODUCT, "accelerator", "gpu-type")
"""The labels for the model of a node, the first one counts."""
VALUES: Final = ("a", "b", "c")
LABELS: Final = (TYPE, POOL, "rack", *MODELS)
KINDS: Final = {TYPE: Trait.INSTANCE_TYPE, POOL: Trait.POOL, "rack": Trait.LABEL, PRODUCT: Trait.GPU_MODEL}
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
RULES: Final = Rules(pool_labels=(POOL,))


class Priced(NamedTuple):
    """A rule of a price book, in order: nodes with that value cost so much; without a key, all nodes."""

    key: str
    value: str
    price: int


class Waits(NamedTuple):
    """A pod that waits; it selects nodes by its selector, or by the same affinity."""

    selector: Mapping[str, str]
    gpus: int
    tolerates: bool
    by_affinity: bool

    def spec(self) -> Json:
        """Of the pod, or of a template."""
        spec: Json = PodForm(gpus=self.gpus).manifest()["spec"]
        if self.tolerates:
            spec["tolerations"] = [{"key": "team", "operator": "Exists"}]
        if self.by_affinity and self.selector:
            terms = [{"key": key, "operator": "In", "values": [value]} for key, value in self.selector.items()]
            selector = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
            return spec | {"affinity": {"nodeAffinity": {REQUIRED: selector}}}
        return spec | {"nodeSelector": dict(self.selector)}


LISTS = st.lists(
    st.builds(Priced, st.sampled_from(["", *KINDS]), st.sampled_from(VALUES), st.integers(1, 5)), max_size=6
)
LABELLED = st.dictionaries(st.sampled_from(LABELS), st.sampled_from(VALUES), max_size=4)
NODES = st.lists(st.tuples(LABELLED, st.sampled_from([1, 8]), st.booleans(), st.booleans()), max_size=4)
"""The labels of each, its GPUs, and whether it is tainted or cordoned."""
SELECTORS = st.dictionaries(st.sampled_from(LABELS), st.sampled_from(VALUES), max_size=2)
PODS = st.lists(
    st.builds(Waits, SELECTORS, st.sampled_from([1, 4, 9]), st.booleans(), st.booleans()), min_size=1, max_size=4
)
Nodes = Sequence[tuple[Mapping[str, str], int, bool, bool]]


@given(LISTS, NODES, NODES, PODS)
@examples(150)
def test_a_wait_costs_what_the_pod_would_cost_on_the_nodes_that_it_selects(
    rules: list[Priced], before: Nodes, after: Nodes, pods: list[Waits]
) -> None:
    replay = Replay(rules=RULES, book=book_of(rules), opened=0)
    replay.relist(Kind.NODES, *forms(before), at=1, since=None)
    see_all(replay, pods, at=2)
    replay.scrape(5)
    assert of_pods(replay) == of_jobs(replay) == [expected(rules, before, each) for each in pods]

    lasting = [PRODUCT in labels for labels, *_ in before]  # what a node had found out holds for an hour
    replay.relist(Kind.NODES, *forms(after, others=lasting), at=6, since=5)
    for at in range(10, 90, 5):
        replay.fleet.advance(us(at))
        replay.fleet.waiting.judge(at_us=us(at))
        replay.fleet.uncreated.read()
    wanted = replay.scrape(95).wanted
    assert +Counter({model: quantity // GPU for model, quantity in wanted.items()}) == models(before, after, pods)
    assert of_pods(replay) == of_jobs(replay) == [expected(rules, after, each) for each in pods]

    replay.restart(at=120)
    see_all(replay, pods, at=121)
    replay.scrape(125)
    replay.relist(Kind.NODES, *forms(after, others=lasting), at=130, since=95)
    replay.scrape(135)
    assert of_pods(replay) == of_jobs(replay) == [expected(rules, after, each) for each in pods]
    assert charged_since(replay, 96) == {(number, expected(rules, after, each)) for number, each in enumerate(pods)}


HONEST = st.lists(
    st.tuples(
        st.builds(Waits, SELECTORS, st.sampled_from([1, 4]), st.booleans(), st.booleans()),
        st.integers(4, 8),
        st.integers(1, 10),
        st.sampled_from(["waits", "bound", "deleted"]),
    ),
    min_size=1,
    max_size=3,
)
"""What waits, since when and for how long if it does not last."""
MANY = st.lists(st.builds(Waits, SELECTORS, st.integers(1, 9), st.booleans(), st.booleans()), min_size=9, max_size=20)
"""Pods that differ from each other: all are to be looked up."""
END: Final = 25
Honest = tuple[Waits, int, int, str]


@given(LISTS.filter(bool), NODES.filter(bool), HONEST, MANY, st.booleans())
@examples(100)
def test_however_much_others_ask_for_a_wait_costs_the_same(
    rules: list[Priced],
    nodes: Nodes,
    honest: list[Honest],
    many: list[Waits],
    late: bool,  # noqa: FBT001 - drawn: whether the nodes are listed last
) -> None:
    """Prices are looked up in turn, which take many rounds here."""
    with patch("gputally.accounting.wait_book.prices.MOST_NODE_CHECKS", 1):
        alone, attacked = (played(rules, nodes, honest, each, late=late) for each in ((), many))
    assert priced(attacked, "ml") == priced(alone, "ml")


def played(
    rules: Sequence[Priced], nodes: Nodes, honest: Sequence[Honest], many: Sequence[Waits], *, late: bool
) -> Replay:
    replay = Replay(rules=RULES, book=book_of(rules), opened=0)
    steps: list[tuple[int, Callable[[], None]]] = [
        (7 if late else 1, lambda: replay.relist(Kind.NODES, *forms(nodes), at=7 if late else 1, since=None)),
        (2, lambda: replay.relist(Kind.PODS, at=2, since=None)),
        *((4, partial(see, replay, f"h{number}", waits, "hostile", at=4)) for number, waits in enumerate(many)),
    ]
    for number, (waits, at, lasts, end) in enumerate(honest):
        steps.append((at, partial(see, replay, f"p{number}", waits, "ml", at=at)))
        if end != "waits":
            node = "n0" if nodes and end == "bound" else ""
            steps.append((at + lasts, partial(lose, replay, f"p{number}", waits, at=at + lasts, node=node)))
    steps += [(at, partial(judge, replay, at)) for at in range(END)]
    for _, step in sorted(steps, key=itemgetter(0)):
        step()
    for _ in range(len(many) + len(honest)):
        judge(replay, END)
    replay.scrape(END)
    return replay


def judge(replay: Replay, at: int) -> None:
    replay.fleet.advance(us(at))
    replay.fleet.waiting.judge(at_us=us(at))
    replay.fleet.uncreated.read()


def see(replay: Replay, name: str, waits: Waits, namespace: str, *, at: int) -> None:
    """A pod, and a Job that a queue holds back."""
    replay.see_object(Kind.PODS, as_pod(manifest_of(name, waits, namespace, at)), at=at)
    replay.see_object(Kind.JOBS, job_of(name, waits, namespace), at=at)


def lose(replay: Replay, name: str, waits: Waits, *, at: int, node: str) -> None:
    """Both are over: the pod is bound to `node`, or deleted."""
    manifest = manifest_of(name, waits, "ml", at)
    if node:
        bound = PodForm(name=name, node=node, scheduled=at).manifest()
        bound["metadata"]["resourceVersion"] = "2"
        bound["spec"] = manifest["spec"] | {"nodeName": node}
        replay.see_object(Kind.PODS, as_pod(bound), at=at)
    else:
        replay.lose_object(Kind.PODS, as_pod(manifest), at=at)
    replay.lose_object(Kind.JOBS, job_of(name, waits, "ml"), at=at)


def manifest_of(name: str, waits: Waits, namespace: str, at: int) -> Json:
    return PodForm(name=name, namespace=namespace, created=at).manifest() | {"spec": waits.spec()}


def job_of(name: str, waits: Waits, namespace: str) -> Job:
    job = parallel_job(f"j{name}", queue="q", suspend=True, template={"spec": waits.spec()})
    return replace(job, metadata=replace(job.metadata, namespace=namespace))


def priced(replay: Replay, namespace: str) -> Counter[tuple[object, ...]]:
    """µGPU·µs by pod or Job and its prices."""
    waits: list[tuple[str, PendingSegment | UncreatedPodsSegment, int]] = [
        (row.uid, row.wait, row.wait.quantity) for row in replay.memory.waits.values() if row.namespace == namespace
    ]
    waits += [
        (each.uid, each, each.whole) for each in replay.memory.uncreated_waits.values() if each.namespace == namespace
    ]
    found = Counter[tuple[object, ...]]()
    for uid, each, quantity in waits:
        end_us = us(END) if each.to_us is None else each.to_us
        found[uid, *_prices(each)] += quantity * (end_us - each.from_us)
    return found


def see_all(replay: Replay, pods: Sequence[Waits], *, at: int) -> None:
    """The pods and Jobs."""
    jobs = (
        parallel_job(f"j{number}", queue="q", suspend=True, template={"spec": each.spec()})
        for number, each in enumerate(pods)
    )
    replay.relist_objects(Kind.JOBS, *jobs, at=at)
    replay.relist_objects(Kind.PODS, *(pod(number, each) for number, each in enumerate(pods)), at=at)


def charged_since(replay: Replay, at: int) -> set[tuple[int, tuple[int | None, int | None]]]:
    """The prices of the waits of each pod and Job after that time."""
    waits: list[tuple[str, PendingSegment | UncreatedPodsSegment]] = [
        (row.uid, row.wait) for row in replay.memory.waits.values()
    ]
    waits += [(each.uid, each) for each in replay.memory.uncreated_waits.values()]
    return {(int(uid[-1]), _prices(each)) for uid, each in waits if each.to_us is None or each.to_us > us(at)}


def pod(number: int, waits: Waits) -> Pod:
    manifest = PodForm(name=f"p{number}").manifest()
    return as_pod(manifest | {"spec": waits.spec()})


def of_pods(replay: Replay) -> list[tuple[int | None, int | None]]:
    """The lowest and the highest price of each, as it is charged."""
    known = replay.fleet.waiting.book.known
    return [_prices(known[uid].waits[-1]) for uid in sorted(known)]


def of_jobs(replay: Replay) -> list[tuple[int | None, int | None]]:
    known = replay.fleet.uncreated.waits.known
    return [_prices(known[key]) for key in sorted(known)]


def _prices(wait: PendingSegment | UncreatedPodsSegment) -> tuple[int | None, int | None]:
    lowest, highest = (None if each is None else int(each.per_gpu_hour) for each in (wait.price, wait.highest))
    return lowest, highest


def expected(rules: Sequence[Priced], nodes: Nodes, waits: Waits) -> tuple[int | None, int | None]:
    selected = [each for each in nodes if waits.selector.items() <= each[0].items()]
    large = [each for each in selected if each[1] >= waits.gpus]
    open_to_it = [each for each in large if not each[3] and (waits.tolerates or not each[2])]
    prices = sorted(filter(None, (price_of(rules, each[0]) for each in open_to_it or large)))
    if not selected and waits.selector:
        named = [each for each in rules if each.key]
        prices = sorted(filter(None, [price_of(named, waits.selector)]))
    if not prices:
        return None, None
    return prices[0], prices[-1] if prices[-1] != prices[0] else None


def models(before: Nodes, nodes: Nodes, pods: Sequence[Waits]) -> Counter[str]:
    """GPUs by the model that pods are counted under: that of the nodes with their label, whichever label it is."""
    own = {model: labels for labels, *_ in nodes if (model := model_of(labels))}
    exported = {model_of(labels) for labels, *_ in (*before, *nodes)}
    wanted = Counter[str]()
    for waits in pods:
        text = model_of(waits.selector)
        named = {model_of(labels) for labels, *_ in nodes if text in [labels.get(key) for key in MODELS]}
        known = text if text in own or not named else named.pop() if len(named) == 1 else None
        known = None if text is None else known
        wanted["any" if known is None else known if known in exported else "other"] += waits.gpus
    return wanted


def model_of(labels: Mapping[str, str]) -> str | None:
    return next((labels[key] for key in MODELS if key in labels), None)


def price_of(rules: Sequence[Priced], labels: Mapping[str, str]) -> int | None:
    values = {**labels, PRODUCT: model_of(labels)}
    return next((each.price for each in rules if not each.key or values.get(each.key) == each.value), None)


def book_of(rules: Sequence[Priced]) -> PriceBook:
    return PriceBook(
        currency="EUR",
        basis=Basis.NODE,
        rules=tuple(
            PriceRule(
                id=f"r{number}",
                criteria=(Criterion(trait=KINDS[key], key=key if key == "rack" else "", globs=(value,)),)
                if key
                else (),
                prices=(DatedPrice(from_us=0, per_gpu_hour=Decimal(price)),),
            )
            for number, (key, value, price) in enumerate(rules)
        ),
    )


def _criterion(key: str, value: str) -> Criterion:
    return Criterion(trait=KINDS[key], key=key if key == "rack" else "", globs=(value,))


def forms(nodes: Nodes, *, others: Sequence[bool] = ()) -> list[NodeForm]:
    """Nodes with the same names each time, or with another one where `others` says so."""
    taint = {"key": "team", "value": "x", "effect": "NoSchedule"}
    return [
        NodeForm(
            name=("nm"[number < len(others) and others[number]]) + str(number),
            labels=labels,
            gpus=gpus,
            taints=(taint,) * is_tainted,
            cordoned=is_cordoned,
        )
        for number, (labels, gpus, is_tainted, is_cordoned) in enumerate(nodes)
    ]
