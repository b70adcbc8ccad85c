"""The client against a kubelet that serves on a real socket."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from grpc import StatusCode

from gputally.devices.kubelet.pod_resources_client import PodResourcesClient
from gputally.errors import KubeletError, KubeletRefused, KubeletUnreachable
from tests.fakes.kubelet import Kubelet, pod, running
from tests.fakes.until import PATIENCE_SECONDS

TRAIN = pod("ml/train", {"nvidia.com/gpu": ["GPU-a", "GPU-b"]})
SERVE = pod("ml/serve", {"nvidia.com/gpu.shared": ["GPU-c::1"]})
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


@pytest.fixture
async def kubelet(path: Path) -> AsyncIterator[Kubelet]:
    async with running(path) as kubelet:
        kubelet.pods = [TRAIN, SERVE]
        yield kubelet


@pytest.fixture
async def client(path: Path) -> AsyncIterator[PodResourcesClient]:
    async with PodResourcesClient(str(path), deadline_seconds=PATIENCE_SECONDS) as client:
        yield client


async def devices(client: PodResourcesClient) -> list[str]:
    return [each.device.text for each in await client.list()]


async def devices_in_the_end(client: PodResourcesClient) -> list[str]:
    """What is told once the kubelet is reached again."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await devices(client)
            except KubeletUnreachable:
                await asyncio.sleep(0.01)


async def error_from(client: PodResourcesClient) -> KubeletError:
    with pytest.raises(KubeletError) as caught:
        await client.list()
    return caught.value


@contextmanager
def as_nobody(path: Path) -> Iterator[None]:
    """Without the right to enter the folder of `path`; root has it unless it steps down."""
    path.parent.chmod(0o000)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(NOBODY)
        yield
    finally:
        os.seteuid(user)
        path.parent.chmod(0o700)


async def test_all_that_is_held_is_listed(kubelet: Kubelet, client: PodResourcesClient) -> None:
    assert [(each.namespace, each.pod, each.device.uuid) for each in await client.list()] == [
        ("ml", "serve", "GPU-c"),
        ("ml", "train", "GPU-a"),
        ("ml", "train", "GPU-b"),
    ]

    kubelet.pods = []

    assert await client.list() == ()


@pytest.mark.usefixtures("kubelet")
async def test_one_pod_can_be_asked_for(client: PodResourcesClient) -> None:
    assert await client.get("ml", "serve") == (await client.list())[:1]
    assert await client.get("ml", "gone") == ()


async def test_the_devices_that_may_be_allocated_are_told_by_resource(
    kubelet: Kubelet, client: PodResourcesClient
) -> None:
    kubelet.allocatable = {
        "nvidia.com/gpu": ["GPU-a", "GPU-b"],
        "nvidia.com/mig-1g.5gb": ["MIG-c"],
        "example.com/nic": ["eth1"],
    }

    assert await client.allocatable() == {
        "nvidia.com/gpu": frozenset({"GPU-a", "GPU-b"}),
        "nvidia.com/mig-1g.5gb": frozenset({"MIG-c"}),
    }


async def test_many_calls_share_one_connection(kubelet: Kubelet, client: PodResourcesClient) -> None:
    for _ in range(5):
        await client.list()
        await client.allocatable()

    assert kubelet.connections == 1


async def test_a_list_of_six_megabytes_is_read(kubelet: Kubelet, client: PodResourcesClient) -> None:
    many = [f"GPU-{number:036}" for number in range(120_000)]
    kubelet.pods = [pod("ml/train", {"nvidia.com/gpu": many})]

    assert await devices(client) == many


async def test_a_list_above_sixteen_megabytes_is_an_error_that_says_so(
    kubelet: Kubelet, client: PodResourcesClient
) -> None:
    kubelet.raw = bytes(17 << 20)

    error = await error_from(client)

    assert isinstance(error, KubeletUnreachable)
    assert f"{kubelet.path}: List: the reply is larger than 16 MiB" in str(error)


async def test_a_reply_that_is_no_message_is_an_error_that_says_so(
    kubelet: Kubelet, client: PodResourcesClient
) -> None:
    kubelet.raw = b"\xff\xff"

    error = await error_from(client)

    assert isinstance(error, KubeletUnreachable)
    assert f"{kubelet.path}: List: unexpected reply" in str(error)


async def test_an_absent_socket_is_named_with_the_folder_to_mount(path: Path, client: PodResourcesClient) -> None:
    error = await error_from(client)

    assert isinstance(error, KubeletUnreachable)
    assert str(error) == (
        f"{path}: no such socket; mount the directory /var/lib/kubelet/pod-resources of the host, not the file"
    )


async def test_a_socket_where_nobody_listens_is_unreachable(path: Path, client: PodResourcesClient) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))

    error = await error_from(client)

    assert isinstance(error, KubeletUnreachable)
    assert str(error).startswith(f"{path}: List: UNAVAILABLE")


async def test_a_forbidden_socket_is_refused_with_what_to_do(kubelet: Kubelet, client: PodResourcesClient) -> None:
    with as_nobody(Path(kubelet.path)):
        error = await error_from(client)

    assert isinstance(error, KubeletRefused)
    assert str(error) == (
        f"{kubelet.path}: permission denied; run as root, with /var/lib/kubelet/pod-resources mounted from the host"
    )


async def test_a_kubelet_that_does_not_answer_in_time_is_unreachable(kubelet: Kubelet) -> None:
    kubelet.answers.clear()

    async with asyncio.timeout(PATIENCE_SECONDS / 2), PodResourcesClient(kubelet.path, deadline_seconds=0.05) as client:
        error = await error_from(client)

    assert isinstance(error, KubeletUnreachable)
    assert str(error).startswith(f"{kubelet.path}: List: DEADLINE_EXCEEDED")


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit", KubeletUnreachable),
        (StatusCode.UNAVAILABLE, "shutting down", KubeletUnreachable),
        (StatusCode.UNKNOWN, "checkpoint is corrupted", KubeletUnreachable),
        (StatusCode.INTERNAL, "panic", KubeletUnreachable),
        (StatusCode.PERMISSION_DENIED, "who are you", KubeletRefused),
    ],
)
async def test_what_the_kubelet_answers_instead_is_told(
    kubelet: Kubelet, client: PodResourcesClient, code: StatusCode, text: str, kind: type[KubeletError]
) -> None:
    kubelet.refusal = (code, text)

    error = await error_from(client)

    assert type(error) is kind
    assert str(error) == f"{kubelet.path}: List: {code.name}: {text}"


async def test_a_kubelet_without_the_api_is_refused_with_what_is_needed(path: Path, client: PodResourcesClient) -> None:
    async with running(path, unserved=["List"]):
        error = await error_from(client)

    assert isinstance(error, KubeletRefused)
    assert str(error).startswith(f"{path}: List: UNIMPLEMENTED")
    assert str(error).endswith("mount /var/lib/kubelet/pod-resources of a kubelet of Kubernetes 1.20 or later")


async def test_calls_that_an_old_kubelet_lacks_are_not_served(path: Path, client: PodResourcesClient) -> None:
    async with running(path, unserved=["Get", "GetAllocatableResources"]):
        assert await client.get("ml", "train") is None
        assert await client.allocatable() is None


@pytest.mark.parametrize("text", ["PodResources API Get method disabled", "API GetAllocatableResources disabled"])
async def test_calls_behind_a_closed_feature_gate_are_not_served(
    kubelet: Kubelet, client: PodResourcesClient, text: str
) -> None:
    kubelet.refusal = (StatusCode.UNKNOWN, text)

    assert await client.get("ml", "train") is None
    assert await client.allocatable() is None


async def test_errors_of_the_other_calls_are_told_as_well(kubelet: Kubelet, client: PodResourcesClient) -> None:
    kubelet.refusal = (StatusCode.UNAVAILABLE, "shutting down")

    with pytest.raises(KubeletUnreachable, match="Get: UNAVAILABLE: shutting down"):
        await client.get("ml", "train")
    with pytest.raises(KubeletUnreachable, match="GetAllocatableResources: UNAVAILABLE: shutting down"):
        await client.allocatable()


async def test_a_restarted_kubelet_is_found_again(kubelet: Kubelet, client: PodResourcesClient) -> None:
    before = await devices(client)
    for _ in range(3):
        await kubelet.stop()
        assert isinstance(await error_from(client), KubeletUnreachable)
        await kubelet.start()
        assert await devices_in_the_end(client) == before

    assert kubelet.connections == 1


async def test_a_kubelet_that_was_restarted_between_two_calls_is_told_of_once(
    kubelet: Kubelet, client: PodResourcesClient
) -> None:
    before = await devices(client)
    await kubelet.stop()
    await kubelet.start()

    error = await error_from(client)

    assert isinstance(error, KubeletUnreachable)
    assert await devices_in_the_end(client) == before
    assert await devices(client) == before


async def test_a_kubelet_that_comes_late_is_found(path: Path, client: PodResourcesClient) -> None:
    assert isinstance(await error_from(client), KubeletUnreachable)

    async with running(path) as kubelet:
        kubelet.pods = [TRAIN]

        assert await devices_in_the_end(client) == ["GPU-a", "GPU-b"]


async def test_a_call_that_is_cancelled_leaves_the_connection_usable(
    kubelet: Kubelet, client: PodResourcesClient
) -> None:
    kubelet.answers.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.list(), timeout=0.01)
    kubelet.answers.set()

    assert await devices(client) == ["GPU-c::1", "GPU-a", "GPU-b"]
