"""What a tenant may do whose only right is to create pods: random lives of pods that the API server would accept.

None of it depends on the honest cluster but for the names of its nodes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from string import ascii_letters, digits
from typing import Any

from hypothesis import strategies as st

from tests.core.manifests import Json, PodForm
from tests.property.node_lives import LATEST
from tests.property.strategies import Cluster, told
from tests.told import Told

Draw = st.DrawFn
NAMESPACE = "hostile"
NODES = ("n1", "n2", "invented", "..", "kube-system/x")
JUNK_TEAMS = tuple(f"junk-{number}" for number in range(12))
"""No honest pod is of any of these."""
AMOUNTS = (0, 1, 2, 8, 10**9, 2**53 + 1, 10**18, 2**62, 2**63 - 1)
RESOURCES = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-7g.1000000gb",
    "nvidia.com/mig-9999999999999999999g.1gb",
    "nvidia.com/mig-",
    "nvidia.com/gpu.shared.shared",
    "amd.com/gpu",
    f"hostile.example/{'n' * 63}",
)
HUGE_GRACE = (0, 1, 30, 2**31, 10**9)
KINDS = ("../../pods#", "?watch=true#", "Job", "ReplicaSet", "Pod", "名", "\u202e", "K" * 300)
LABELS = ("queue", "pod-template-hash", "batch.kubernetes.io/job-name", "ray.io/cluster", "kueue.x-k8s.io/queue-name")
SELECTORS = st.dictionaries(
    st.sampled_from(("pool", "rack", "nvidia.com/gpu.product")), st.sampled_from(("a", "b", "H100")), max_size=2
)
"""Labels that nodes may have or not: pods that select them in different ways cannot be looked up together."""
_VALUES = st.text(ascii_letters + digits, min_size=1, max_size=63)


@dataclass(frozen=True, kw_only=True)
class Rights:
    """What the rules of the cluster make of pods: whether they may `hold` GPUs, and name `teams` of others."""

    hold: bool
    teams: tuple[str, ...]


UNTRUSTED = Rights(hold=True, teams=("red", "blue", *JUNK_TEAMS))
"""Under rules that read nothing from pods."""
TRUSTED = Rights(hold=False, teams=JUNK_TEAMS)
"""Under rules that read the tenant from pods: whoever may write pods may say whose they are, but not fill the label."""


@st.composite
def hostilities(draw: Draw, rights: Rights) -> list[Told]:
    """What a watch tells of the pods of one hostile tenant."""
    lives = [draw(_life(f"h{number}", rights)) for number in range(draw(st.integers(1, 6)))]
    return draw(told("pod", [step for life in lives for step in life], None, relist=False))


def beside(cluster: Cluster, hostile: Iterable[Told]) -> Cluster:
    """The same cluster with these pods in it: what is told of the others is the same, in the same order."""
    return Cluster(log=tuple(sorted([*cluster.log, *hostile], key=lambda told: (told.at, told.kind))))


@st.composite
def _life(draw: Draw, name: str, rights: Rights) -> list[tuple[int, PodForm, bool]]:
    """Created, changed again and again, and deleted or not."""
    created = draw(st.integers(0, LATEST - 10))
    form = PodForm(
        name=name,
        namespace=NAMESPACE,
        created=created,
        gpus=draw(st.sampled_from(AMOUNTS)),
        resource=draw(st.sampled_from(RESOURCES)),
        tier=draw(st.sampled_from(("", "gold", "lead"))),
        labels=draw(_labels(rights)),
        node_selector=draw(SELECTORS),
        owners=draw(_owners(name)),
    )
    if rights.hold and draw(st.booleans()):
        form = replace(form, node=draw(st.sampled_from(NODES)))
    life, at = [(created, form, False)], created
    for _ in range(draw(st.integers(0, 8))):
        at = draw(st.integers(at, LATEST))
        form = replace(form, **draw(_change(form, at, rights)))
        life.append((at, form, False))
    return [*life, (at, form, True)] if draw(st.booleans()) else life


@st.composite
def _labels(draw: Draw, rights: Rights) -> dict[str, str]:
    chosen = draw(st.dictionaries(st.sampled_from(LABELS), _VALUES, max_size=3))
    return chosen | ({"team": draw(st.sampled_from(rights.teams))} if draw(st.booleans()) else {})


@st.composite
def _owners(draw: Draw, name: str) -> tuple[Json, ...]:
    if draw(st.booleans()):
        return ()
    uid = draw(st.sampled_from((f"owner-of-{name}", "uid-p0", f"uid-{name}", "?watch=true#")))
    kind, of = draw(st.sampled_from(KINDS)), draw(st.sampled_from(("x", "../../../pods#", "")))
    return ({"apiVersion": "v1", "kind": kind, "name": of, "uid": uid, "controller": True},)


@st.composite
def _change(draw: Draw, form: PodForm, at: int, rights: Rights) -> dict[str, Any]:
    """Labels and deletion are the tenant's to change; what else happens is what controllers make of its pods."""
    kinds = ["labels", "owners", "delete", "node", "start", "refuse", "end"]
    kind = draw(st.sampled_from(kinds if rights.hold else kinds[:3]))
    if kind == "labels":
        return {"labels": draw(_labels(rights))}
    if kind == "owners":
        return {"owners": draw(_owners(form.name))}
    if kind == "delete":
        return {"deleted": at, "grace": draw(st.sampled_from(HUGE_GRACE))}
    return _happening(kind, form, at)


def _happening(kind: str, form: PodForm, at: int) -> dict[str, Any]:
    """As far as it can happen to the pod as it is."""
    if kind == "node" and not form.node:
        return {"node": "n1", "scheduled": at}
    if kind == "start" and form.node and form.started is None and not form.phase:
        return {"started": at}
    if kind == "refuse" and form.node and form.started is None:
        return {"phase": "Failed", "reason": "OutOfnvidia.com/gpu", "message": "\x00" * 9}
    if kind == "end" and form.started is not None and form.finished is None:
        return {"phase": "Succeeded", "finished": at}
    return {}
