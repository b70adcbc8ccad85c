"""Random nodes, and what becomes of them, in whole seconds since midnight."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.core.manifests import NodeForm

Draw = st.DrawFn
Change = tuple[int, dict[str, Any]]
HORIZON = 100
OPENED = 20
LATEST = HORIZON - 10
RACK = "rack"
CHIP = "nvidia.com/GA102GL_A10"
FAST = "feature.node.kubernetes.io/fast"
GKE = {"cloud.google.com/gke-accelerator": "nvidia-a100-80gb"}


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What a node offers, and what its pods ask for."""

    labels: dict[str, str]
    capacity: dict[str, int]


LAYOUTS = (
    Layout(labels={"nvidia.com/gpu.product": "A100", RACK: "a"}, capacity={"nvidia.com/gpu": 4}),
    Layout(
        labels={"nvidia.com/gpu.product": "H100", "nvidia.com/gpu.count": "4", FAST: "true"},
        capacity={"nvidia.com/gpu": 4},
    ),
    Layout(
        labels={"nvidia.com/gpu.product": "T4", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "3"},
        capacity={"nvidia.com/gpu.shared": 6},
    ),
    Layout(
        labels={"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.count": "2", "nvidia.com/mig.strategy": "mixed"},
        capacity={"nvidia.com/mig-3g.40gb": 2, "nvidia.com/mig-1g.10gb": 5},
    ),
    Layout(
        labels={
            "nvidia.com/gpu.product": "H100",
            "nvidia.com/gpu.count": "3",
            "nvidia.com/gpu.replicas": "2",
            "nvidia.com/mig-3g.40gb.replicas": "1",
            "nvidia.com/mig-1g.10gb.replicas": "4",
        },
        capacity={"nvidia.com/gpu": 4, "nvidia.com/mig-3g.40gb": 1, "nvidia.com/mig-1g.10gb.shared": 12},
    ),
    Layout(
        labels={"nvidia.com/gpu.product": "T4", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "1"},
        capacity={"nvidia.com/gpu": 2},
    ),
    Layout(
        labels={"nvidia.com/gpu.product": "T4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "1"},
        capacity={"nvidia.com/gpu": 10},
    ),
    Layout(labels=GKE | {"cloud.google.com/gke-max-shared-clients-per-gpu": "3"}, capacity={"nvidia.com/gpu": 6}),
    Layout(
        labels=GKE
        | {
            "cloud.google.com/gke-gpu-partition-size": "2g.20gb",
            "cloud.google.com/gke-max-shared-clients-per-gpu": "2",
        },
        capacity={"nvidia.com/gpu": 12},
    ),
    Layout(labels={RACK: "b", FAST: "false"}, capacity={"amd.com/gpu": 3}),
    Layout(labels={}, capacity={"amd.com/gpu": 3}),
    Layout(labels={"nvidia.com/gpu.product": "B200", "nvidia.com/gpu.count": "4"}, capacity={}),
    Layout(labels={"nvidia.com/gpu.count": "2"}, capacity={CHIP: 2}),
)
"""The GPUs of the last two are given out by Dynamic Resource Allocation, and passed through to virtual machines."""


@dataclass(frozen=True, kw_only=True)
class Incarnation:
    """A node from its creation to its deletion."""

    form: NodeForm
    layout: Layout
    changes: tuple[Change, ...]
    gone: int | None


@st.composite
def incarnations(draw: Draw, name: str, *, relabels: bool) -> list[Incarnation]:
    """A node, deleted and created again under the same name, or not; what comes again may be the same machine.

    With `relabels` its labels come and go.
    """
    found: list[Incarnation] = []
    created = draw(st.integers(0, 40))
    layout, machine = draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(["", "4c4c4544"]))
    for i in range(draw(st.integers(1, 3))):
        if i and not draw(st.booleans()):
            layout, machine = draw(st.sampled_from(LAYOUTS)), draw(st.sampled_from(["", f"other-{i}"]))
        form = NodeForm(
            name=name,
            uid=f"{name}-{i}",
            created=created,
            labels=layout.labels if not relabels or draw(st.booleans()) else {},
            capacity=layout.capacity,
            machine=machine,
        )
        lasts = draw(st.integers(15, 60))
        changes = draw(node_changes(form, created + lasts, layout.labels if relabels else {}))
        gone = created + lasts if created + lasts < LATEST and draw(st.booleans()) else None
        found.append(Incarnation(form=form, layout=layout, changes=tuple(changes), gone=gone))
        if gone is None or gone > LATEST - 20:
            break
        created = gone + draw(st.integers(0, 5))
    return found


@st.composite
def some_of(draw: Draw, labels: dict[str, str]) -> dict[str, str]:
    """Some of these labels, some of them with another number."""
    found = {key: labels[key] for key in sorted(labels) if draw(st.integers(0, 2))}
    for key in [key for key in found if key.endswith(".replicas") and not draw(st.integers(0, 2))]:
        found[key] = str(draw(st.integers(1, 4)))
    if "nvidia.com/gpu.count" in found and not draw(st.integers(0, 2)):  # a GPU has failed
        found["nvidia.com/gpu.count"] = str(int(found["nvidia.com/gpu.count"]) - 1)
    return found


@st.composite
def node_changes(draw: Draw, form: NodeForm, end: int, labels: dict[str, str]) -> list[Change]:
    """One thing at a time, with time between: cordoned, not ready, a device broken, a device plugin restarting.

    The `labels` come together, as what discovers them writes all at once; then some of them go, return or change.
    """
    changes: list[Change] = []
    at, ready, cordoned = form.created, True, False
    whole = dict(form.capacity or {})
    devices = ["broken", "plugin"] if whole else []
    while (at := at + draw(st.integers(4, 20))) < min(end, LATEST):
        kind = draw(st.sampled_from(["ready", "cordon", *devices, *(["labels"] * 3 if labels else [])]))
        if kind == "ready":
            ready = not ready
            changes.append((at, {"ready": "True" if ready else "Unknown", "ready_since": at}))
        elif kind == "cordon":
            cordoned = not cordoned
            changes.append((at, {"cordoned": cordoned}))
        elif kind == "labels":
            is_known = form.labels or any("labels" in change for _, change in changes)
            changes.append((at, {"labels": draw(some_of(labels)) if is_known and draw(st.booleans()) else labels}))
        elif kind == "broken":
            first = next(iter(whole))
            left = whole | {first: whole[first] - draw(st.integers(0, 2))}
            changes.append((at, {"capacity": whole, "allocatable": left}))
        else:
            offered = dict.fromkeys(whole, 0) if draw(st.booleans()) else whole
            changes.append((at, {"capacity": offered, "allocatable": offered}))
    return changes


def node_life(node: Incarnation) -> list[tuple[int, NodeForm, bool]]:
    form, life = node.form, [(node.form.created, node.form, False)]
    for at, change in node.changes:
        form = replace(form, **change)
        life.append((at, form, False))
    return [*life, (node.gone, form, True)] if node.gone is not None else life
