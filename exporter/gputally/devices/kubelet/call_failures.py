"""What a failed call of the kubelet's PodResources API means for the caller."""

import socket
from typing import Final

from grpc import StatusCode
from grpc.aio import AioRpcError

from gputally.errors import KubeletError, KubeletRefused, KubeletUnreachable

DIRECTORY: Final = "/var/lib/kubelet/pod-resources"
MAX_BYTES: Final = 16 << 20
"""The largest reply that is read; gRPC's own limit of 4 MiB is met by nodes with many devices."""


class NotServed(KubeletRefused):
    """The kubelet does not know the call or has it switched off."""


class NoSuchPod(KubeletUnreachable):
    """The kubelet does not have the pod asked for, or not yet."""


def error_of(error: AioRpcError, path: str, method: str) -> KubeletError:
    """What `error` means, the answer to `method` from the socket `path`."""
    code, text = error.code(), error.details() or ""
    told = f"{path}: {method}: {code.name}: {text}"
    match code:
        case StatusCode.UNAVAILABLE:
            return _unavailable(path, told)
        case StatusCode.RESOURCE_EXHAUSTED if "larger than max" in text:  # gRPC's own words; else the rate limit
            return KubeletUnreachable(f"{path}: {method}: the reply is larger than {MAX_BYTES >> 20} MiB: {text}")
        case StatusCode.UNIMPLEMENTED:
            return NotServed(f"{told}; mount {DIRECTORY} of a kubelet of Kubernetes 1.20 or later")
        case StatusCode.UNKNOWN | StatusCode.NOT_FOUND:
            return _in_prose(text, told)
        case StatusCode.PERMISSION_DENIED | StatusCode.UNAUTHENTICATED:
            return KubeletRefused(told)
        case _:
            return KubeletUnreachable(told)


def _in_prose(text: str, told: str) -> KubeletError:
    """What the kubelet has no code for: a call that a feature gate holds back, a pod that it does not have.

    Source: k8s.io/kubernetes pkg/kubelet/apis/podresources/server_v1.go.
    """
    if "disabled" in text:
        return NotServed(told)
    return NoSuchPod(told) if "not found" in text else KubeletUnreachable(told)


def _unavailable(path: str, told: str) -> KubeletError:
    """Why there is no connection, by trying to connect: gRPC tells it in prose that changes."""
    match _obstacle(path):
        case PermissionError():
            return KubeletRefused(f"{path}: permission denied; run as root, with {DIRECTORY} mounted from the host")
        case FileNotFoundError():
            return KubeletUnreachable(
                f"{path}: no such socket; mount the directory {DIRECTORY} of the host, not the file"
            )
        case _:
            return KubeletUnreachable(told)


def _obstacle(path: str) -> OSError | None:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(0)
        try:
            probe.connect(path)
        except OSError as error:
            return error
    return None
