"""Watch events of a busy fleet: deterministic for a seed, with a version for each change of a pod."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

from gputally.accounting.prices.book import ALWAYS, DatedPrice, PriceBook, PriceRule
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Deleted, Observation, RelistFinished, RelistStarted, Upserted
from gputally.model.price import Basis
from tests.core.manifests import NodeForm, PodForm, as_namespace, as_node, as_pod, namespace, us

if TYPE_CHECKING:
    from gputally.model.kube.meta import Object

BOOK = PriceBook(
    name="invented",
    currency="EUR",
    basis=Basis.NODE,
    digest="0123456789abcdef",
    rules=(PriceRule(id="any", prices=(DatedPrice(from_us=ALWAYS, per_gpu_hour=Decimal("2.21")),)),),
)
NODES = tuple(
    NodeForm(name=f"n{number}", labels={"nvidia.com/gpu.product": f"model-{number % 2}"}) for number in range(48)
)
TIERS = {"serving": 1000, "training": 500, "": 0}
PODS_PER_MINUTE = 30


@dataclass(frozen=True)
class Step:
    """A new version of a pod at a time in seconds."""

    at: int
    form: PodForm
    gone: bool = False


def stream(seed: int, pods: int) -> tuple[Observation, ...]:
    """The complete lifecycles of `pods` pods. The n-th observation has the resourceVersion n, starting at 1."""
    chance = Random(seed)
    steps = [step for number in range(pods) for step in life(chance, number, pods)]
    steps.sort(key=lambda step: (step.at, step.form.name))
    return tuple(_observation(step, version) for version, step in enumerate(steps, 1))


def life(chance: Random, number: int, pods: int) -> Iterator[Step]:
    """Created, bound, started, sometimes deleted or preempted, and gone; some versions are not observed."""
    created = 60 + chance.randrange(60 * pods // PODS_PER_MINUTE)
    tier = chance.choice(tuple(TIERS))
    form = PodForm(name=f"pod-{number}", created=created, gpus=chance.choice((1, 2, 8)), tier=tier)
    yield Step(created, form)
    bound = created + chance.randrange(90)
    form = replace(form, node=chance.choice(NODES).name, scheduled=bound)
    yield Step(bound, form)
    started = bound + chance.randrange(20)
    form = replace(form, started=started)
    if chance.random() < 0.8:
        yield Step(started, form)
    asked = started + chance.randrange(300)
    if chance.random() < 0.5:
        form = replace(form, deleted=asked, marked=asked if chance.random() < 0.3 else None)
        yield Step(asked, form)
    finished = asked + chance.randrange(30)
    if chance.random() < 0.7:
        form = replace(form, finished=finished, phase="Succeeded")
        yield Step(finished, form)
    yield Step(finished + chance.randrange(5), form, gone=True)


def initial_listings(at_us: int) -> Iterator[Observation]:
    """The listings of namespaces and nodes at each start."""
    found: dict[Kind, list[Object]] = {
        Kind.NAMESPACES: [as_namespace(namespace())],
        Kind.NODES: [as_node(form) for form in NODES],
    }
    for kind, objects in found.items():
        yield RelistStarted(kind=kind, at_us=at_us)
        yield from (Upserted(kind=kind, object=each, at_us=at_us, since_us=at_us) for each in objects)
        yield RelistFinished(kind=kind, version="1", at_us=at_us, since_us=None, as_of_us=at_us)


def _observation(step: Step, version: int) -> Observation:
    at_us = us(step.at)
    observed = Deleted if step.gone else Upserted
    return observed(kind=Kind.PODS, object=as_pod(replace(step.form, version=version)), at_us=at_us, since_us=at_us)
