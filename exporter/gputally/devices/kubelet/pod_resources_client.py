"""Client for the PodResources socket of this node's kubelet, over one persistent connection."""

import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from google.protobuf.message import DecodeError
from grpc import StatusCode
from grpc.aio import AioRpcError, insecure_channel

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
from gputally.errors import KubeletError, KubeletRefused, KubeletUnreachable

DIRECTORY: Final = "/var/lib/kubelet/pod-resources"
MAX_BYTES: Final = 16 << 20
"""Maximum reply size. Nodes with many devices exceed gRPC's default of 4 MiB."""
SOCKET: Final = f"{DIRECTORY}/kubelet.sock"
DEADLINE_SECONDS: Final = 2.0
_OPTIONS: Final = (
    ("grpc.default_authority", "localhost"),  # as Go clients send; gRPC's default, var%2Flib%2F..., is not a valid host
    ("grpc.max_receive_message_length", MAX_BYTES),
    # Reconnect to a restarted kubelet by the next poll; gRPC's default backoff is two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
)
T = TypeVar("T")


class NotServed(KubeletRefused):
    """The kubelet does not implement the call or has it disabled."""


class NoSuchPod(KubeletUnreachable):
    """The kubelet does not have the requested pod, or not yet."""


def error_of(error: AioRpcError, path: str, method: str) -> KubeletError:
    """The gputally error for `error`, returned by `method` on the socket `path`."""
    code, text = error.code(), error.details() or ""
    message = f"{path}: {method}: {code.name}: {text}"
    match code:
        case StatusCode.UNAVAILABLE:
            return _unavailable(path, message)
        case StatusCode.RESOURCE_EXHAUSTED if "larger than max" in text:  # gRPC's own message; otherwise the rate limit
            return KubeletUnreachable(f"{path}: {method}: the reply is larger than {MAX_BYTES >> 20} MiB: {text}")
        case StatusCode.UNIMPLEMENTED:
            return NotServed(f"{message}; mount {DIRECTORY} of a kubelet of Kubernetes 1.20 or later")
        case StatusCode.UNKNOWN | StatusCode.NOT_FOUND:
            return _from_text(text, message)
        case StatusCode.PERMISSION_DENIED | StatusCode.UNAUTHENTICATED:
            return KubeletRefused(message)
        case _:
            return KubeletUnreachable(message)


def _from_text(text: str, message: str) -> KubeletError:
    """Classify by message text: the kubelet has no status code for a disabled feature gate or a missing pod.

    Source: k8s.io/kubernetes pkg/kubelet/apis/podresources/server_v1.go.
    """
    if "disabled" in text:
        return NotServed(message)
    return NoSuchPod(message) if "not found" in text else KubeletUnreachable(message)


def _unavailable(path: str, message: str) -> KubeletError:
    """Find the cause by connecting to the socket: gRPC's message text varies between versions."""
    match _connect_error(path):
        case PermissionError():
            return KubeletRefused(f"{path}: permission denied; run as root, with {DIRECTORY} mounted from the host")
        case FileNotFoundError():
            return KubeletUnreachable(
                f"{path}: no such socket; mount the directory {DIRECTORY} of the host, not the file"
            )
        case _:
            return KubeletUnreachable(message)


def _connect_error(path: str) -> OSError | None:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0)
        try:
            probe.connect(path)
        except OSError as error:
            return error
    return None


class PodResourcesClient:
    """Queries the kubelet at the socket `path` for `wanted` devices. Create it inside the event loop that uses it.

    Every call raises KubeletUnreachable if a retry may help (no socket, no reply within `deadline_seconds`, a reply
    above 16 MiB, the kubelet's limit of 100 calls per second), or KubeletRefused if a retry does not help.
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
        """Close the connection and cancel all calls."""
        await self._channel.close()

    async def list(self) -> tuple[DeviceAssignment, ...]:
        """The current device assignments on this node.

        Also raises KubeletUnreachable once after a kubelet restart: the kubelet may not know its pods yet.
        """
        reply = await self._call("List", encode(ListPodResourcesRequest), ListPodResourcesResponse)
        if self._was_restarted():
            raise KubeletUnreachable(f"{self._path}: the kubelet was restarted")
        return assignments(reply.pod_resources, self._wanted)

    async def get(self, namespace: str, pod: str) -> tuple[DeviceAssignment, ...] | None:
        """Assignments of one pod, empty if there is no such pod; None if the kubelet lacks this call (before 1.34)."""
        request = encode(GetPodResourcesRequest, pod_namespace=namespace, pod_name=pod)
        try:
            reply = await self._call("Get", request, GetPodResourcesResponse)
        except NotServed:
            return None
        except NoSuchPod:
            return ()
        return assignments([reply.pod_resources], self._wanted)

    async def allocatable(self) -> Mapping[str, frozenset[str]] | None:
        """IDs of the healthy devices by resource, allocated or not; None if the kubelet lacks this call.

        Devices of DRA drivers are not included.
        """
        request = encode(AllocatableResourcesRequest)
        try:
            reply = await self._call("GetAllocatableResources", request, AllocatableResourcesResponse)
        except NotServed:
            return None
        return device_ids(reply.devices, self._wanted)

    async def _call(self, method: str, request: bytes, shape: type[T]) -> T:
        call = self._channel.unary_unary(f"/{SERVICE}/{method}", _identity, _identity)
        try:
            return decode(shape, await call(request, timeout=self._deadline_seconds))
        except AioRpcError as error:
            self._socket = None
            raise error_of(error, self._path, method) from error
        except DecodeError as error:  # decoded here, because gRPC turns a decode error into a reply of None
            raise KubeletUnreachable(f"{self._path}: {method}: unexpected reply: {error}") from error

    def _was_restarted(self) -> bool:
        """Whether the socket changed since the last successful call: each kubelet creates a new one.

        Nothing else reveals a restart that takes a fraction of a second.
        """
        before = self._socket
        try:
            found = Path(self._path).stat()
        except OSError:  # the kubelet is gone again; the next call fails
            return False
        self._socket = (found.st_ino, found.st_ctime_ns)
        return before is not None and before != self._socket


def _identity(message: bytes) -> bytes:
    return message
