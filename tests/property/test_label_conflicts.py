"""A node has some GPUs, slices and replicas; its labels are late, lost, stale or wrong, and its GPUs fail."""

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from gputally.model.node_record import NodeFacts
from gputally.model.units import GPU
from tests.core.layouts import Layout
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay
from tests.property.conftest import OUTLIVES
from tests.property.examples import LONG, examples

RESOURCE = "nvidia.com/gpu"
SLICES = {"": 1, "1g.10gb": 7, "2g.20gb": 3, "3g.40gb": 2}
STEPS = ("labels", "plugin", "fail", "fail", "repair", "restart", "again", "pod", "pod", "stale", "cordon")
GKE = "cloud.google.com/gke-"
EXAMPLES = examples(150)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What is true of a node, and who labels it: discovery, discovery that knows of no replicas, or GKE."""

    gpus: int
    profile: str
    replicas: int
    renamed: bool
    labelled_by: str

    @property
    def units(self) -> int:
        return self.gpus * SLICES[self.profile] * self.replicas

    @property
    def unit(self) -> int:
        compute = int(self.profile[0]) if self.profile else 7
        return GPU * compute // 7 // self.replicas

    @property
    def resource(self) -> str:
        return f"{RESOURCE}.shared" if self.renamed else RESOURCE

    def labels(self, *, gpus: int, stale: int) -> dict[str, str]:
        """With so many GPUs that work; `stale` replaces the replicas that discovery knows of."""
        if self.labelled_by == "gke":
            partition = {f"{GKE}gpu-partition-size": self.profile} if self.profile else {}
            clients = {f"{GKE}max-shared-clients-per-gpu": str(self.replicas)} if self.replicas > 1 else {}
            return {f"{GKE}accelerator": "nvidia-a100-80gb"} | partition | clients
        known = 1 if self.labelled_by == "blind" else stale or self.replicas
        single = f"-MIG-{self.profile}" if self.profile else ""
        return {
            f"{RESOURCE}.product": f"NVIDIA-A100-SXM4-80GB{single}{'-SHARED' * (known > 1 and not self.renamed)}",
            f"{RESOURCE}.count": str(gpus * SLICES[self.profile]),
            f"{RESOURCE}.replicas": str(known),
            "nvidia.com/mig.strategy": "single",
        }


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """GKE names no resource anew."""
    labelled_by = draw(st.sampled_from(["discovery", "blind", "gke"]))
    return Machine(
        gpus=draw(st.integers(1, 8)),
        profile=draw(st.sampled_from(sorted(SLICES))),
        replicas=draw(st.sampled_from([1, 1, 2, 3, 10, 50])),
        renamed=labelled_by != "gke" and draw(st.booleans()),
        labelled_by=labelled_by,
    )


class History:
    """What is told of the node, in seconds; its GPUs fail only once they were counted beside all of their units."""

    def __init__(self, machine: Machine, data: st.DataObject) -> None:
        self.machine = machine
        self.replay = Replay()
        self.pods: dict[str, int] = {}
        self.at = self._labelled = 1
        self._draw = data.draw
        self._stale, self._working, self._incarnation = 0, machine.gpus, 0
        self._is_labelled, self._is_offered, self._was_counted = self._draw(st.booleans()), True, False
        self.form = NodeForm(machine="m", capacity={machine.resource: 0})
        self.tell()

    def step(self, kind: str) -> None:
        """Something happens, and is told a second later."""
        self.at += 1
        if kind == "pod":
            self._bind()
        elif kind == "restart":
            self.replay.flush()
            self.replay.restart()
        elif kind == "again":
            self._incarnation += 1
            self.replay.lose(self.form, at=self.at)
            self.form = replace(self.form, uid=f"n1-{self._incarnation}", created=self.at)
        self._change(kind)
        if self.at > self._labelled + OUTLIVES // 2:  # what is lost for long is forgotten
            self._is_labelled = True
        self.tell()

    def _change(self, kind: str) -> None:
        if kind == "labels":
            self._is_labelled = not self._is_labelled
            self._labelled = self.at
        elif kind == "plugin":
            self._is_offered = not self._is_offered
        elif kind == "fail" and self._was_counted and self._working > 1:
            self._working = self._draw(st.integers(1, self._working - 1))
        elif kind == "repair":
            self._working = self.machine.gpus
        elif kind == "stale":
            self._stale = self._draw(st.integers(0, self.machine.replicas))
        elif kind == "cordon":
            self.form = replace(self.form, cordoned=not self.form.cordoned)

    def tell(self) -> None:
        """The node as it is now."""
        machine = self.machine
        # GKE's labels are a property of the node pool, and nothing removes them
        has_labels = self._is_labelled or machine.labelled_by == "gke"
        labels = machine.labels(gpus=self._working, stale=self._stale) if has_labels else {}
        units = machine.units if self._is_offered else 0
        is_exact = machine.labelled_by == "discovery" and self._stale in (0, machine.replicas)
        is_exact |= machine.labelled_by == "blind" and machine.replicas == 1
        self._was_counted |= is_exact and has_labels and self._is_offered and self._working == machine.gpus
        self.form = replace(self.form, labels=labels, capacity={machine.resource: units})
        self.replay.see(self.form, at=self.at)

    def end(self) -> None:
        """All is well, and told so."""
        self._is_labelled = self._is_offered = True
        self.step("repair")

    def facts(self) -> list[NodeFacts]:
        """All that is known of the node, the latest last."""
        records = [account.record for account in self.replay.fleet.nodes.accounts.values()]
        records.sort(key=lambda record: record.created_us)
        return [facts for record in records for _, facts in record.facts]

    def _bind(self) -> None:
        name, units = f"p{len(self.pods)}", self._draw(st.integers(1, self.machine.units))
        pod = PodForm(
            name=name, node="n1", created=self.at, scheduled=self.at, started=self.at, resource=self.machine.resource
        )
        self.replay.see(replace(pod, gpus=units), at=self.at)
        self.pods[name] = units


@given(machines(), st.lists(st.sampled_from(STEPS), min_size=10, max_size=90 if LONG else 30), st.data())
@EXAMPLES
def test_a_unit_is_its_part_of_the_physical_gpus_whatever_labels_say_and_whatever_fails(
    machine: Machine, steps: list[str], data: st.DataObject
) -> None:
    history = History(machine, data)
    for kind in (*steps, "pod"):
        history.step(kind)
        assert all(each.covered <= each.physical for each in history.facts())
    history.end()

    weights = {name: {each.quantity for each in history.replay.segments(name)} for name in history.pods}
    assert weights == {name: {units * machine.unit} for name, units in history.pods.items()}
    assert max(each.physical for each in history.facts()) == history.facts()[-1].physical == machine.gpus * GPU
    history.replay.scrape(history.at)


@given(machines(), st.data())
@EXAMPLES
def test_the_agent_weighs_the_devices_that_it_sees_as_the_aggregator_does(
    machine: Machine, data: st.DataObject
) -> None:
    profiles = (machine.profile,) * SLICES[machine.profile] if machine.profile else ()
    layout = Layout(
        profiles=(profiles,) * machine.gpus,
        replicas={RESOURCE: machine.replicas} if machine.replicas > 1 else {},
        renamed=machine.renamed,
        single=bool(profiles),
        gke=machine.labelled_by == "gke",
    )
    node = replace(layout.node, labels=machine.labels(gpus=machine.gpus, stale=0))
    [resource] = node.capacity or {}
    units = data.draw(st.lists(st.integers(1, machine.units), min_size=1, max_size=4))
    pods = [
        layout.pod(f"p{i}", resource, count) for i, count in enumerate(units) if sum(units[: i + 1]) <= machine.units
    ]
    replay = Replay()
    replay.see(node, at=1)
    replay.see(*pods, at=11)

    assert layout.shares(*pods) == {pod.name: replay.segments(pod.name)[0].quantity for pod in pods}
