"""What a tenant may create in its namespace that asks for pods, or limits them, of any size that the API accepts."""

from collections.abc import Callable
from typing import Final, NamedTuple

from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.frameworks.kueue import KueueWorkload
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.policy import PodDisruptionBudget
from gputally.model.kube.workloads import Job
from tests.core.gang_pods import group
from tests.core.kueue import kueue_workload, unreserved
from tests.core.manifests import GPU_NAME
from tests.core.policies import budget, quota
from tests.core.refusals import exceeded, failed_create, parallel_job
from tests.property.hostile import AMOUNTS, NAMESPACE, SELECTORS
from tests.property.node_lives import LATEST

Draw = st.DrawFn
PARALLEL: Final = (1, 4, 1000, 2**31 - 1)
MODELS: Final = ("", "H100", "no-such-model")


class Asking(NamedTuple):
    """An object as observed at `at`; `is_gone` if it was deleted then."""

    at: int
    kind: Kind
    found: Object
    is_gone: bool


@st.composite
def askings(draw: Draw) -> list[Asking]:
    """Suspended and refused workloads, groups, budgets and quotas, in order of time."""
    found: list[Asking] = []
    for number in range(draw(st.integers(1, 8))):
        at, make = draw(st.integers(0, LATEST - 10)), draw(st.sampled_from(_KINDS))
        kind, each = make(draw, f"h{number}")
        found.append(Asking(at, kind, each, is_gone=False))
        if draw(st.booleans()):
            found.append(Asking(draw(st.integers(at, LATEST)), kind, each, is_gone=True))
    return sorted(found, key=lambda each: each.at)


def _job(draw: Draw, name: str) -> tuple[Kind, Object]:
    model, sizes = draw(st.sampled_from(MODELS)), (draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(PARALLEL)))
    found = parallel_job(name, gpus=sizes[0], parallelism=sizes[1], queue="q", suspend=True, model=model)
    template = found.spec.template
    if draw(st.booleans()):
        spec = replace(template.spec, node_selector=draw(SELECTORS))
        found = replace(found, spec=replace(found.spec, template=replace(template, spec=spec)))
    return Kind.JOBS, _moved(found)


def _workload(draw: Draw, name: str) -> tuple[Kind, Object]:
    gpus, pods = draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(PARALLEL))
    owner = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "name": name,
        "uid": f"of-{name}",
        "controller": True,
    }
    sets = {f"set-{number}": gpus for number in range(draw(st.integers(1, 8)))}
    found = kueue_workload(unreserved(1), owner=owner, gpus=sets, name=name, uid=f"uid-{name}")
    counted = tuple(replace(each, count=pods) for each in found.spec.pod_sets or ())
    return Kind.KUEUE_WORKLOADS, _moved(replace(found, spec=replace(found.spec, pod_sets=counted)))


def _event(draw: Draw, name: str) -> tuple[Kind, Object]:
    needed, limited = draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(AMOUNTS))
    of = {"kind": "MPIJob", "apiVersion": "kubeflow.org/v1"}
    return Kind.FAILED_CREATES, failed_create(
        exceeded(requested=needed, used=0, limited=limited), name=name, namespace=NAMESPACE, at=0, **of
    )


def _group(draw: Draw, name: str) -> tuple[Kind, Object]:
    least = draw(st.sampled_from(PARALLEL))
    return Kind.COSCHEDULING_GROUPS, group(Kind.COSCHEDULING_GROUPS, name, least, namespace=NAMESPACE)


def _quota(draw: Draw, name: str) -> tuple[Kind, Object]:
    hard = {GPU_NAME: str(draw(st.sampled_from(AMOUNTS)))}
    return Kind.QUOTAS, quota(name, hard, used={GPU_NAME: "0"}, namespace=NAMESPACE)


def _budget(draw: Draw, name: str) -> tuple[Kind, Object]:
    return Kind.DISRUPTION_BUDGETS, _moved(budget(draw(st.sampled_from(PARALLEL)), name))


def _moved(found: Job | KueueWorkload | PodDisruptionBudget) -> Object:
    """The object in the namespace of the tenant."""
    return replace(found, metadata=replace(found.metadata, namespace=NAMESPACE))


_KINDS: Final[tuple[Callable[[Draw, str], tuple[Kind, Object]], ...]] = (
    *(_job, _job, _workload, _event),
    *(_group, _quota, _budget),
)
