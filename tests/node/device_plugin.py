"""A device plugin like NVIDIA's, whose devices are only names: what it offers, tests change while it runs."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import grpc

from tests.node.messages import DEVICE_PLUGIN, message_classes

MESSAGES = message_classes("v1beta1", DEVICE_PLUGIN)
REPLICA = "::"
"""Between the UUID of a shared GPU and the number of the share, as NVIDIA's plugin writes it."""
LOOK_EVERY_S = 0.1
Handler = Callable[[Any, grpc.ServicerContext], Any]
Socket = tuple[int, int]
"""Tells a socket from its successor at the same path."""


class Resource:
    """One extended resource: its devices, and the server that the kubelet asks for them."""

    def __init__(self, name: str, ids: Iterable[str], endpoint: Path) -> None:
        self.name = name
        self.endpoint = endpoint
        self.healthy = dict.fromkeys(ids, True)
        self.changed = threading.Condition()
        self.server: grpc.Server | None = None
        self.registered_with: Socket | None = None
        self.registrations = 0

    def change(self, healthy: Mapping[str, bool]) -> None:
        """From now on these devices; the kubelet is told at once."""
        with self.changed:
            self.healthy = dict(healthy)
            self.changed.notify_all()

    def serve(self) -> None:
        """At a new socket: a kubelet that starts removes all that it finds."""
        self.stop()
        self.endpoint.unlink(missing_ok=True)
        self.server = grpc.server(ThreadPoolExecutor(thread_name_prefix=self.endpoint.stem))
        self.server.add_generic_rpc_handlers((handlers(self),))
        self.server.add_insecure_port(f"unix:{self.endpoint}")
        self.server.start()

    def stop(self) -> None:
        if self.server:
            stopped = self.server.stop(grace=None)
            with self.changed:
                self.changed.notify_all()
            stopped.wait()
            self.server = None

    def register(self, kubelet: Path) -> None:
        """Raises grpc.RpcError while the kubelet does not listen."""
        request = MESSAGES["RegisterRequest"](
            version="v1beta1", endpoint=self.endpoint.name, resource_name=self.name, options={}
        )
        with grpc.insecure_channel(f"unix:{kubelet}") as channel:
            invoke = channel.unary_unary(
                "/v1beta1.Registration/Register",
                request_serializer=MESSAGES["RegisterRequest"].SerializeToString,
                response_deserializer=MESSAGES["Empty"].FromString,
            )
            invoke(request, timeout=5)
        self.registrations += 1

    def keep_registered(self, kubelet: Path) -> None:
        """Serve and register anew where the kubelet, or its memory of us, is new."""
        listening = identity(kubelet)
        if not listening or (listening == self.registered_with and self.endpoint.exists()):
            return
        with suppress(grpc.RpcError):  # not up yet; the next look tries again
            self.serve()
            self.register(kubelet)
            self.registered_with = listening

    def options(self, _request: object, _context: grpc.ServicerContext) -> object:
        return MESSAGES["DevicePluginOptions"]()  # neither preferences nor a call before the start

    def list_and_watch(self, _request: object, context: grpc.ServicerContext) -> Iterator[object]:
        """The devices now, and again after each change."""
        context.add_callback(self.wake)
        told: dict[str, bool] | None = None
        while context.is_active():
            with self.changed:
                self.changed.wait_for(lambda: self.healthy != told or not context.is_active())  # noqa: B023 - done here
                told = self.healthy
            yield MESSAGES["ListAndWatchResponse"](
                devices=[
                    {"ID": device, "health": "Healthy" if healthy else "Unhealthy"} for device, healthy in told.items()
                ]
            )

    def wake(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def allocate(self, request: Any, _context: grpc.ServicerContext) -> object:  # noqa: ANN401 - made at run time
        visible = (visible_devices(container.devices_ids) for container in request.container_requests)
        return MESSAGES["AllocateResponse"](
            container_responses=[{"envs": [{"key": "NVIDIA_VISIBLE_DEVICES", "value": each}]} for each in visible]
        )


class DevicePlugin:
    """All resources of a node; it follows the kubelet at `folder`/kubelet.sock through restarts."""

    def __init__(self, folder: Path, offered: Mapping[str, Iterable[str]]) -> None:
        self.folder = folder
        self.kubelet = folder / "kubelet.sock"
        self.resources: dict[str, Resource] = {}
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.follow_kubelet, name="device plugin")
        for name, ids in offered.items():
            self.offer(name, ids)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()
        for resource in self.resources.values():
            resource.stop()

    def offer(self, name: str, ids: Iterable[str]) -> None:
        """From now on exactly these devices, all healthy; the resource may be new."""
        if name in self.resources:
            self.resources[name].change(dict.fromkeys(ids, True))
        else:
            endpoint = self.folder / f"{name.rpartition('/')[2]}.sock"
            self.resources = self.resources | {name: Resource(name, ids, endpoint)}

    def set_health(self, device: str, *, healthy: bool) -> None:
        """Of one device, wherever it is offered."""
        for resource in self.resources.values():
            if device in resource.healthy:
                resource.change(resource.healthy | {device: healthy})

    def registrations(self, name: str) -> int:
        """How often a kubelet has accepted the resource."""
        return self.resources[name].registrations

    def follow_kubelet(self) -> None:
        while not self.ended.wait(LOOK_EVERY_S):
            for resource in self.resources.values():
                resource.keep_registered(self.kubelet)


def handlers(resource: Resource) -> grpc.GenericRpcHandler:
    """The service; PreStartContainer and GetPreferredAllocation are not in it, for the options forgo them."""

    def unary(method: Handler, request: str, answer: str) -> "grpc.RpcMethodHandler[Any, Any]":
        return grpc.unary_unary_rpc_method_handler(
            method, MESSAGES[request].FromString, MESSAGES[answer].SerializeToString
        )

    return grpc.method_handlers_generic_handler(
        "v1beta1.DevicePlugin",
        {
            "GetDevicePluginOptions": unary(resource.options, "Empty", "DevicePluginOptions"),
            "Allocate": unary(resource.allocate, "AllocateRequest", "AllocateResponse"),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                resource.list_and_watch,
                MESSAGES["Empty"].FromString,
                MESSAGES["ListAndWatchResponse"].SerializeToString,
            ),
        },
    )


def replicas(gpu: str, count: int) -> list[str]:
    """Device ids of a GPU that is shared in time."""
    return [f"{gpu}{REPLICA}{number}" for number in range(count)]


def visible_devices(ids: Iterable[str]) -> str:
    """The value of NVIDIA_VISIBLE_DEVICES: UUIDs, each once, without the number of a share."""
    return ",".join(dict.fromkeys(device.partition(REPLICA)[0] for device in ids))


def identity(socket: Path) -> Socket | None:
    try:
        status = socket.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_ctime_ns
