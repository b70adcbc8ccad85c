"""The kubelet of this node, asked over its PodResources socket by one connection that is kept."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from google.protobuf.message import DecodeError
from grpc.aio import AioRpcError, insecure_channel

from gputally.devices.kubelet.call_failures import DIRECTORY, MAX_BYTES, NoSuchPod, NotServed, error_of
from gputally.devices.kubelet.device_assignments import NVIDIA, DeviceAssignment, Wanted, assignments, device_ids
from gputally.devices.kubelet.messages import (
    SERVICE,
    AllocatableResourcesRequest,
    AllocatableResourcesResponse,
    GetPodResourcesRequest,
    GetPodResourcesResponse,
    ListPodResourcesRequest,
    ListPodResourcesResponse,
    decode,
    encode,
)
from gputally.errors import KubeletUnreachable

SOCKET: Final = f"{DIRECTORY}/kubelet.sock"
DEADLINE_SECONDS: Final = 2.0
_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),  # as Go's clients say; gRPC's own choice, var%2Flib%2F..., is no host
    ("grpc.max_receive_message_length", MAX_BYTES),
    # A kubelet that was restarted is to be found at the next reading, not after gRPC's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
)

T = TypeVar("T")


class PodResourcesClient:
    """What the kubelet at the socket `path` tells of what is `wanted`; made inside the event loop that uses it.

    Errors of every call: KubeletUnreachable (no socket, no answer within `deadline_seconds`, a reply above 16 MiB, the
    kubelet's limit of 100 calls a second: try again), KubeletRefused (trying again will not help).
    """

    def __init__(
        self, path: str = SOCKET, *, wanted: Wanted = NVIDIA, deadline_seconds: float = DEADLINE_SECONDS
    ) -> None:
        self._path = path
        self._wanted = wanted
        self._deadline_seconds = deadline_seconds
        self._channel = insecure_channel(f"unix:{path}", options=_OPTIONS)
        self._socket: tuple[int, int] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection, and with it every call."""
        await self._channel.close()

    async def list(self) -> tuple[DeviceAssignment, ...]:
        """Who holds what on this node at this moment.

        KubeletUnreachable also, once, if it is another kubelet than the last time: it may not know its pods yet.
        """
        reply = await self._ask("List", encode(ListPodResourcesRequest), ListPodResourcesResponse)
        if self._is_another():
            raise KubeletUnreachable(f"{self._path}: the kubelet was restarted")
        return assignments(reply.pod_resources, self._wanted)

    async def get(self, namespace: str, pod: str) -> tuple[DeviceAssignment, ...] | None:
        """What one pod holds, nothing if there is none; None if the kubelet does not serve this (before 1.34)."""
        request = encode(GetPodResourcesRequest, pod_namespace=namespace, pod_name=pod)
        try:
            reply = await self._ask("Get", request, GetPodResourcesResponse)
        except NotServed:
            return None
        except NoSuchPod:
            return ()
        return assignments([reply.pod_resources], self._wanted)

    async def allocatable(self) -> Mapping[str, frozenset[str]] | None:
        """The ids of the healthy devices by resource, held or not; None if the kubelet does not serve this.

        Devices of DRA drivers are not among them.
        """
        request = encode(AllocatableResourcesRequest)
        try:
            reply = await self._ask("GetAllocatableResources", request, AllocatableResourcesResponse)
        except NotServed:
            return None
        return device_ids(reply.devices, self._wanted)

    async def _ask(self, method: str, request: bytes, shape: type[T]) -> T:
        call = self._channel.unary_unary(f"/{SERVICE}/{method}", _as_is, _as_is)
        try:
            return decode(shape, await call(request, timeout=self._deadline_seconds))
        except AioRpcError as error:
            self._socket = None
            raise error_of(error, self._path, method) from error
        except DecodeError as error:  # ours to find: gRPC would make of it a reply of None
            raise KubeletUnreachable(f"{self._path}: {method}: unexpected reply: {error}") from error

    def _is_another(self) -> bool:
        """Whether the socket is not the one of the last call, if that succeeded: each kubelet makes its own.

        Nothing else tells of one that was gone for a fraction of a second.
        """
        before = self._socket
        try:
            found = Path(self._path).stat()
        except OSError:  # gone again, which the next call will meet
            return False
        self._socket = (found.st_ino, found.st_ctime_ns)
        return before is not None and before != self._socket


def _as_is(message: bytes) -> bytes:
    return message
