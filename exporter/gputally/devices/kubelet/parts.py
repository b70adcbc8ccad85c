"""Look up the driver's GPU parts by kubelet device ID."""

from collections.abc import Iterable

from gputally.devices.kubelet.device_ids import DeviceId
from gputally.model.devices import Reading


class Parts:
    """The GPU parts of the last reading, indexed by every form of device ID."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._uuids: set[str] = set()
        self._gpus: dict[int, str] = {}
        self._instances: dict[tuple[str, int | None, int | None], str] = {}
        self._starts: dict[tuple[str, int | None], str] = {}
        for reading in readings:
            if reading.gpu.minor is not None:
                self._gpus[reading.gpu.minor] = reading.gpu.uuid
            for part in reading.parts:
                self._uuids.add(part.uuid)
                if reading.mig:
                    self._instances[reading.gpu.uuid, part.gi, part.ci] = part.uuid
                    self._instances.setdefault((reading.gpu.uuid, part.gi, None), part.uuid)
                    self._starts[reading.gpu.uuid, part.placement] = part.uuid

    def __contains__(self, uuid: str) -> bool:
        return uuid in self._uuids

    def find(self, device: DeviceId) -> str | None:
        """UUID of the part that `device` identifies; None if no GPU of this node has it."""
        if device.uuid in self._uuids:
            return device.uuid
        gpu = device.uuid or self._gpus.get(-1 if device.minor is None else device.minor, "")
        if device.gi is not None:
            return self._instances.get((gpu, device.gi, device.ci))
        if device.start is not None:
            return self._starts.get((gpu, device.start))
        return gpu if gpu in self._uuids else None
