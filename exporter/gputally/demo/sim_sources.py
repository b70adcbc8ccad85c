"""The driver and the kubelet of a simulated node, with the interfaces of the real ones."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from gputally.devices.kubelet.device_assignments import DeviceAssignment
from gputally.devices.kubelet.device_ids import parse
from gputally.devices.nvml.gpu_worker import Trouble, TroubleReason
from gputally.model.devices import Gpu, GpuCondition, Part, PartAllocations, Process, Reading, Source, Span
from gputally.model.units import GPU
from gputally.process.clock import Clock
from gputally_sim.node.gpus import GpuNode, SimGpu

_FIRST_PID: Final = 1000


class SimDriver:
    """Reads the node's GPUs; each reading covers the time since the previous reading of that GPU."""

    def __init__(self, node: GpuNode) -> None:
        self._node = node
        self._read_us: dict[int, int] = {}

    async def read_all(self, now_us: int) -> Sequence[Reading | Trouble]:
        """One reading for each GPU."""
        return [self._read(gpu, now_us) for gpu in self._node.gpus]

    def xids(self) -> Mapping[tuple[str, int], tuple[int, int]]:
        """No errors are simulated."""
        return {}

    def _read(self, gpu: SimGpu, now_us: int) -> Reading | Trouble:
        if gpu.index in self._node.lost:
            return Trouble(uuid=gpu.uuid, reason=TroubleReason.LOST, text="GPU is lost")
        part, power = self._measure(gpu, self._read_us.get(gpu.index, now_us), now_us)
        self._read_us[gpu.index] = now_us
        return Reading(
            gpu=Gpu(uuid=gpu.uuid, index=gpu.index, minor=gpu.index, model=gpu.model, pci_bus_id=_bus_id(gpu.index)),
            at_us=now_us,
            mig=False,
            parts=(part,),
            condition=GpuCondition(
                power=power, power_limit=gpu.full_power, energy=self._node.energy(gpu.index, now_us)
            ),
        )

    def _measure(self, gpu: SimGpu, from_us: int, now_us: int) -> tuple[Part, int]:
        """The activity of the GPU since `from_us`, and its current power."""
        spans = list(self._node.spans(gpu.index, from_us, now_us)) if from_us < now_us else []
        uses = self._node.uses(gpu.index, from_us, now_us) if spans else []
        part = Part(
            uuid=gpu.uuid,
            weight=GPU,
            source=Source.SAMPLES,
            busy=tuple(Span(*span) for span in spans),
            memory_used=sum(use.memory for use in uses),
            memory_total=gpu.memory,
            processes=tuple(
                Process(pid=_FIRST_PID + index, memory=use.memory, busy=use.busy, pod_uid=use.uid)
                for index, use in enumerate(uses)
            ),
        )
        return part, gpu.power(spans[-1][2] if spans else 0)


class SimKubelet:
    """Lists the device assignments of the node, and resolves the UIDs of their pods."""

    def __init__(self, node: GpuNode, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._offered = {node.resource: node.device_ids()}

    async def list(self) -> tuple[DeviceAssignment, ...]:
        """The current device assignments."""
        return tuple(
            DeviceAssignment(
                namespace=each.namespace,
                pod=each.pod,
                container=grant.container,
                device=parse(self._node.device_id(grant.gpu, grant.unit)),
                resource=self._node.resource,
            )
            for each in self._node.assignments(self._clock())
            for grant in each.grants
        )

    async def allocatable(self) -> Mapping[str, frozenset[str]]:
        """All devices: none is ever unhealthy."""
        return self._offered

    def name(self, allocations: PartAllocations) -> PartAllocations:
        """The same allocations with the UIDs of their pods."""
        uids = {(each.namespace, each.pod): each.uid for each in self._node.assignments(allocations.at_us)}
        named = (replace(held, pod_uid=uids.get((held.namespace, held.pod), "")) for held in allocations.held)
        return replace(allocations, held=tuple(named))


def _bus_id(index: int) -> str:
    return f"00000000:{index + 1:02X}:00.0"
