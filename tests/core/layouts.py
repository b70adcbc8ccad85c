"""Ways to divide the GPUs of a node, as both programs observe them: the node's labels and resources, and what NVML
and the kubelet report for the same node."""

from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from gputally.devices.kubelet.device_assignments import DeviceAssignment, Wanted, parse
from gputally.devices.kubelet.parts import Offer, Parts, allocations
from gputally.devices.nvml.mig_layout import weight_of
from gputally.metering.device_accounts import DeviceAccounts
from gputally.model.devices import Gpu, Part, Reading, Span
from gputally.model.rules import Rules
from gputally.model.units import GPU
from gputally.model.usage import UsageReport
from tests.core.manifests import NodeForm, PodForm, us

A100: Final = "NVIDIA A100-SXM4-80GB"
PRODUCT: Final = "nvidia.com/gpu.product"
MEMORY_MIB: Final = 81920


@dataclass(frozen=True, kw_only=True)
class Layout:
    """GPUs of one model with 80 GB. `profiles` are the MIG devices of each GPU, empty for a whole GPU.

    `replicas` are keyed by resource name without `.shared`, as GPU Feature Discovery labels them; `labelled` replaces
    some of them. On a node of `gke`, its labels say the same, and all units are `nvidia.com/gpu`.
    """

    profiles: tuple[tuple[str, ...], ...] = ((),)
    replicas: dict[str, int]
    renamed: bool = False
    single: bool = False
    gke: bool = False
    labelled: dict[str, str] = field(default_factory=dict)

    @property
    def node(self) -> NodeForm:
        """The node in the API."""
        units = [resource for resource, _ in self._devices()]
        return NodeForm(labels=self._labels(), capacity={name: units.count(name) for name in units})

    def pod(self, name: str, resource: str, count: int = 1) -> PodForm:
        """A pod that runs from 10 s on and requests `count` units."""
        return PodForm(name=name, created=10, node="n1", scheduled=10, started=10, resource=resource, gpus=count)

    def shares(self, *pods: PodForm, rules: Rules = Rules()) -> dict[str, int]:  # noqa: B008 - frozen
        """µGPU of each pod, as the agent reports them to the aggregator."""
        found: dict[str, int] = {}
        for assignment in self.usage(*pods, rules=rules).assignments:
            found[assignment.pod] = found.get(assignment.pod, 0) + assignment.share
        return found

    def usage(self, *pods: PodForm, rules: Rules = Rules(), until: float = 10) -> UsageReport:  # noqa: B008 - frozen
        """The agent's report, for pods that are idle until `until` on the next free devices of their resource."""
        readings, offer = self._readings(rules), Offer()
        parts, devices = Parts(readings), self._devices()
        offer.update({name: frozenset(d for n, d in devices if n == name) for name, _ in devices}, parts, held=())
        assignments = []
        for pod in pods:
            assigned = [device for name, device in devices if name == pod.resource][: pod.gpus]
            devices = [entry for entry in devices if entry[1] not in assigned]
            assignments += [
                DeviceAssignment(
                    namespace="ml",
                    pod=pod.name,
                    container="main",
                    resource=pod.resource,
                    device=parse(device),
                    unit=Wanted(rules=rules).unit(pod.resource),
                )
                for device in assigned
            ]
        accounts = DeviceAccounts(journal_us=us(until), valid_us=us(until), mig_basis=rules.mig_basis)
        for reading in readings:
            accounts.read(reading)
        accounts.allocated(allocations(assignments, offer.replicas, parts, at_us=us(10)))
        for reading in readings:
            idle = tuple(replace(part, busy=(Span(us(10), us(until), 0),)) for part in reading.parts)
            accounts.read(replace(reading, at_us=us(until), parts=idle))
        return accounts.report(us(until), "n1", "e1")

    def _labels(self) -> dict[str, str]:
        return (self._gke_labels() if self.gke else self._discovered_labels()) | self.labelled

    def _gke_labels(self) -> dict[str, str]:
        labels = {"cloud.google.com/gke-accelerator": "nvidia-a100-80gb"}
        if profiles := self.profiles[0]:
            labels["cloud.google.com/gke-gpu-partition-size"] = profiles[0]
        if clients := self.replicas.get("nvidia.com/gpu"):
            labels["cloud.google.com/gke-max-shared-clients-per-gpu"] = str(clients)
            labels["cloud.google.com/gke-gpu-sharing-strategy"] = "time-sharing"
        return labels

    def _discovered_labels(self) -> dict[str, str]:
        profile = f"-MIG-{self.profiles[0][0]}" if self.single else ""
        labels = {
            PRODUCT: A100.replace(" ", "-") + profile,
            "nvidia.com/gpu.count": str(sum(map(len, self.profiles)) if self.single else len(self.profiles)),
            "nvidia.com/gpu.memory": "9728" if self.single else str(MEMORY_MIB),
            "nvidia.com/mig.strategy": "single" if self.single else "mixed",
            "nvidia.com/gpu.replicas": "1" if () in self.profiles or self.single else "0",
        }
        slices = () if self.single else {f"nvidia.com/mig-{each}" for gpu in self.profiles for each in gpu}
        labels |= {f"{name}.replicas": "1" for name in slices}
        labels |= {f"{name}.replicas": str(count) for name, count in self.replicas.items()}
        if "nvidia.com/gpu" in self.replicas and not self.renamed:
            labels[PRODUCT] += "-SHARED"
        return labels

    def _devices(self) -> list[tuple[str, str]]:
        """(resource, device ID) of all advertised units."""
        found = []
        for gpu, profiles in enumerate(self.profiles):
            if self.gke:
                found += [("nvidia.com/gpu", device) for device in self._gke_devices(gpu, len(profiles))]
                continue
            parts = [(f"MIG-{gpu}-{i}", f"nvidia.com/mig-{each}") for i, each in enumerate(profiles)]
            for uuid, resource in parts or [(f"GPU-{gpu}", "nvidia.com/gpu")]:
                base = "nvidia.com/gpu" if self.single else resource
                count = self.replicas.get(base, 1)
                name = f"{base}.shared" if self.renamed and count > 1 else base
                found += [(name, f"{uuid}::{n}") for n in range(count)] if count > 1 else [(name, uuid)]
        return found

    def _gke_devices(self, gpu: int, slices: int) -> list[str]:
        parts = [f"nvidia{gpu}/gi{i}" for i in range(slices)] or [f"nvidia{gpu}"]
        clients = self.replicas.get("nvidia.com/gpu", 1)
        return [f"{part}/vgpu{n}" for part in parts for n in range(clients)] if clients > 1 else parts

    def _readings(self, rules: Rules) -> list[Reading]:
        return [_reading(gpu, profiles, rules) for gpu, profiles in enumerate(self.profiles)]


def _reading(index: int, profiles: tuple[str, ...], rules: Rules) -> Reading:
    uuid = f"GPU-{index}"
    gpu = Gpu(uuid=uuid, index=index, minor=index, model=A100, pci_bus_id="")
    parts = tuple(
        Part(
            uuid=f"MIG-{index}-{i}",
            weight=weight_of(profile, A100, rules, memory_mib=MEMORY_MIB),
            profile=profile,
            gi=i,
            ci=0,
        )
        for i, profile in enumerate(profiles)
    )
    return Reading(gpu=gpu, at_us=us(9), mig=bool(parts), parts=parts or (Part(uuid=uuid, weight=GPU),))


SEVEN: Final = ("1g.10gb",) * 7
TIME_SLICED: Final = Layout(replicas={"nvidia.com/gpu": 4})
RENAMED: Final = Layout(replicas={"nvidia.com/gpu": 4}, renamed=True)
SHARED_SLICES: Final = Layout(profiles=(SEVEN,), replicas={"nvidia.com/mig-1g.10gb": 4})
RENAMED_SLICES: Final = Layout(profiles=(SEVEN,), replicas={"nvidia.com/mig-1g.10gb": 4}, renamed=True)
SHARED_GPU_BESIDE_SLICES: Final = Layout(profiles=((), SEVEN), replicas={"nvidia.com/gpu": 4})
SINGLE: Final = Layout(profiles=(SEVEN, SEVEN), replicas={"nvidia.com/gpu": 4}, single=True)
GKE_CLIENTS: Final = Layout(profiles=((), ()), replicas={"nvidia.com/gpu": 8}, gke=True)
GKE_PARTITIONS: Final = Layout(profiles=(SEVEN,), replicas={}, gke=True)
GKE_SHARED_PARTITIONS: Final = Layout(profiles=(("3g.40gb",) * 2,) * 2, replicas={"nvidia.com/gpu": 4}, gke=True)
ONE_REPLICA_LABELLED: Final = Layout(replicas={"nvidia.com/gpu": 50}, labelled={"nvidia.com/gpu.replicas": "1"})
STALE_REPLICAS: Final = Layout(
    profiles=((), ()), replicas={"nvidia.com/gpu": 10}, labelled={"nvidia.com/gpu.replicas": "4"}
)
MORE_REPLICAS_LABELLED: Final = Layout(replicas={"nvidia.com/gpu": 10}, labelled={"nvidia.com/gpu.replicas": "50"})
SLICES_WITHOUT_REPLICAS: Final = Layout(
    profiles=(SEVEN,),
    replicas={"nvidia.com/mig-1g.10gb": 4},
    labelled={"nvidia.com/mig-1g.10gb.replicas": "1"},
)
SINGLE_WITHOUT_REPLICAS: Final = Layout(
    profiles=(SEVEN, SEVEN),
    replicas={"nvidia.com/gpu": 4},
    single=True,
    labelled={"nvidia.com/gpu.replicas": "1", PRODUCT: f"{A100.replace(' ', '-')}-MIG-1g.10gb"},
)
RENAMED_WITHOUT_REPLICAS: Final = Layout(
    profiles=((), ()), replicas={"nvidia.com/gpu": 4}, renamed=True, labelled={"nvidia.com/gpu.replicas": "1"}
)
