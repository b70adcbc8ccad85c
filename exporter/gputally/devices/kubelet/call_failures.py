"""Map failed PodResources API calls to gputally errors."""

import socket
from typing import Final

from grpc import StatusCode
from grpc.aio import AioRpcError

from gputally.errors import KubeletError, KubeletRefused, KubeletUnreachable

DIRECTORY: Final = "/var/lib/kubelet/pod-resources"
MAX_BYTES: Final = 16 << 20
"""Maximum reply size. Nodes with many devices exceed gRPC's default of 4 MiB."""


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
