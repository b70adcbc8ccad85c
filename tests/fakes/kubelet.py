"""A fake kubelet that serves the PodResources API on a real unix socket, as the test specifies."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grpc import RpcMethodHandler, StatusCode, method_handlers_generic_handler, unary_unary_rpc_method_handler
from grpc.aio import Server, ServicerContext, server

from gputally.devices.kubelet.messages import (
    SERVICE,
    AllocatableResourcesResponse,
    GetPodResourcesRequest,
    GetPodResourcesResponse,
    ListPodResourcesResponse,
    decode,
    encode,
)

Context = ServicerContext[bytes, bytes]
Devices = Mapping[str, Sequence[str]]
"""Device IDs by resource."""
Message = dict[str, Any]
"""A message as plain data, with the field names of api.proto."""


def pod(
    name: str, devices: Devices | None = None, *, claims: Iterable[Message] = (), container: str = "main"
) -> Message:
    """The pod `namespace/name` with one container."""
    namespace, _, name = name.partition("/")
    held = {"name": container, "devices": containing(devices or {}), "dynamic_resources": list(claims)}
    return {"namespace": namespace, "name": name, "containers": [held]}


def containing(devices: Devices) -> list[Message]:
    """One entry per device, as kubelets report them."""
    return [{"resource_name": name, "device_ids": [each]} for name, ids in devices.items() for each in ids]


def claim(name: str, *resources: Message) -> Message:
    """The claim `namespace/name`."""
    namespace, _, name = name.partition("/")
    return {"claim_namespace": namespace, "claim_name": name, "claim_resources": list(resources)}


def claimed(device: str, *, driver: str = "gpu.nvidia.com", pool: str = "node-1") -> Message:
    """A device of a claim, as kubelets since 1.31 report it."""
    return {"driver_name": driver, "pool_name": pool, "device_name": device}


def cdi(*names: str) -> Message:
    """The devices of a claim, as kubelets before 1.31 report them."""
    return {"cdi_devices": [{"name": name} for name in names]}


class Kubelet:
    """Answers from `pods` and `allocatable` while `answers` is set; a `refusal` fails every call.

    `unserved` methods are UNIMPLEMENTED. `raw` replaces the list response.
    """

    def __init__(self, path: Path, *, unserved: Iterable[str] = ()) -> None:
        self.path = str(path)
        self.pods: list[Message] = []
        self.allocatable: Devices = {}
        self.refusal: tuple[StatusCode, str] | None = None
        self.raw: bytes | None = None
        self.answers = asyncio.Event()
        self.answers.set()
        self._unserved = frozenset(unserved)
        self._server: Server | None = None

    async def start(self) -> None:
        """Serve at a new socket."""
        methods = {"List": self._list, "Get": self._get, "GetAllocatableResources": self._allocatable}
        handlers = {name: self._handler(answer) for name, answer in methods.items() if name not in self._unserved}
        self._server = server()
        self._server.add_generic_rpc_handlers([method_handlers_generic_handler(SERVICE, handlers)])
        self._server.add_insecure_port(f"unix:{self.path}")
        await self._server.start()

    async def stop(self) -> None:
        """Break all connections and remove the socket."""
        if self._server:
            await self._server.stop(grace=None)
            self._server = None

    @property
    def connections(self) -> int:
        """The number of open connections: all sockets with this path except the listening one."""
        sockets = Path("/proc/self/net/unix").read_text().splitlines()
        return sum(line.endswith(f" {self.path}") for line in sockets) - 1

    def _handler(self, answer: Callable[[bytes], bytes]) -> "RpcMethodHandler[bytes, bytes]":
        async def handle(request: bytes, context: Context) -> bytes:
            await self.answers.wait()
            if self.refusal:
                await context.abort(*self.refusal)
            if answer == self._get and not self._named(request):
                await context.abort(StatusCode.UNKNOWN, "pod a in namespace b not found")
            return answer(request)

        return unary_unary_rpc_method_handler(handle)

    def _list(self, _: bytes) -> bytes:
        return encode(ListPodResourcesResponse, pod_resources=self.pods) if self.raw is None else self.raw

    def _get(self, request: bytes) -> bytes:
        return encode(GetPodResourcesResponse, pod_resources=self._named(request)[0])

    def _allocatable(self, _: bytes) -> bytes:
        return encode(AllocatableResourcesResponse, devices=containing(self.allocatable))

    def _named(self, request: bytes) -> list[Message]:
        asked = decode(GetPodResourcesRequest, request)
        key = (asked.pod_namespace, asked.pod_name)
        return [each for each in self.pods if (each["namespace"], each["name"]) == key]


@asynccontextmanager
async def running(path: Path, *, unserved: Iterable[str] = ()) -> AsyncIterator[Kubelet]:
    """A kubelet that serves at `path`, except the `unserved` methods."""
    kubelet = Kubelet(path, unserved=unserved)
    await kubelet.start()
    try:
        yield kubelet
    finally:
        kubelet.answers.set()
        await kubelet.stop()
