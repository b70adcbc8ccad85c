"""The agent as a process of its own, between a scripted driver and a kubelet that does as it is told."""

import asyncio
import ssl
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import aiohttp
import msgspec
import pytest

from gputally.model.usage import AssignmentReport, UsageReport
from tests.cluster.control_plane import free_ports
from tests.fakes.certificates import Certificates
from tests.fakes.command import Samples, done, scrape, start, until_ready
from tests.fakes.kubelet import Kubelet, pod, running
from tests.nvml.build import environment
from tests.nvml.script import Gpu, Mig, Script, Xid

PATIENCE_SECONDS = 20
HALF, FULL = Gpu(uuid="GPU-half", curve=[(-60, 50)]), Gpu(uuid="GPU-full", minor=1, curve=[(-60, 100)])
SLICED = Gpu(uuid="GPU-cut", minor=2, mig_mode=True, mig=[Mig(uuid="MIG-a", index=0, gi=1, curve=[(-60, 25)])])
OWNER = 'namespace="ml",pod="train"'


@pytest.fixture
async def kubelet(tmp_path: Path) -> AsyncIterator[Kubelet]:
    async with running(tmp_path / "kubelet.sock") as kubelet:
        kubelet.pods = [pod("ml/train", {"nvidia.com/gpu": ["GPU-half"]})]
        yield kubelet


class Agent:
    """A running agent and its driver."""

    def __init__(self, url: str, process: Process, script: Path, scene: Script) -> None:
        self.url = url
        self.process = process
        self.scene = scene
        self._script = script

    def play(self, *gpus: Gpu) -> None:
        """Let the driver tell of these GPUs from now on."""
        self.scene = replace(self.scene, gpus=gpus)
        self.scene.write(self._script)

    @property
    def now(self) -> Fraction:
        """In the time of the script."""
        return self.scene.since_origin(time.time_ns() // 1000)

    async def until(self, condition: Callable[[Samples], object]) -> Samples:
        """The first scrape that fulfils it."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition(samples := await samples_of(self.url)):  # noqa: ASYNC110 - it sends no signal
                await asyncio.sleep(0.1)
        return samples

    async def usage(self) -> UsageReport:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/v1/usage") as response:
            return msgspec.json.decode(await response.read(), type=UsageReport)


@asynccontextmanager
async def agent(folder: Path, *flags: str | Path, gpus: tuple[Gpu, ...] = (HALF, FULL)) -> AsyncIterator[Agent]:
    script, scene = folder / "nvml.script", Script(origin_us=time.time_ns() // 1000, gpus=gpus)
    scene.write(script)
    [port] = free_ports(1)
    process = await start(*command(folder, port), *flags, environment=environment(script))
    try:
        yield Agent(f"http://127.0.0.1:{port}", process, script, scene)
    finally:
        if process.returncode is None:
            process.terminate()
        await done(process)
    assert process.returncode == 0


def command(folder: Path, port: int) -> tuple[str | Path, ...]:
    return (
        *("agent", "--node", "node-1", "--kubelet.socket", folder / "kubelet.sock"),
        *("--host.pod-logs", folder / "pods", "--web.listen-address", f"127.0.0.1:{port}"),
    )


async def samples_of(url: str) -> Samples:
    """None as long as nobody listens."""
    return await scrape(url) if (await ready(url))[0] else {}


def of(samples: Samples, name: str, label: str) -> float | None:
    """The value of the only series of that name that has the label; None without one."""
    found = [value for sample, value in samples.items() if sample.startswith(f"{name}{{") and label in sample]
    assert len(found) <= 1
    return found[0] if found else None


def assignment(report: UsageReport, name: str = "train") -> AssignmentReport:
    [found] = [each for each in report.assignments if each.pod == name]
    return found


@pytest.mark.usefixtures("kubelet")
async def test_what_a_container_used_is_told_by_container_and_in_the_report(tmp_path: Path) -> None:
    (tmp_path / "pods" / "ml_train_uid-1").mkdir(parents=True)
    async with agent(tmp_path) as node:
        samples = await node.until(lambda s: (of(s, "gputally_container_measured_gpu_seconds_total", OWNER) or 0) > 2)
        report = await node.usage()

    measured = of(samples, "gputally_container_measured_gpu_seconds_total", OWNER)
    used = of(samples, "gputally_container_used_gpu_seconds_total", OWNER)
    assert used == pytest.approx(measured and measured / 2, rel=0.01)
    assert of(samples, "gputally_container_gpu_share_ratio", OWNER) == 1
    assert of(samples, "gputally_gpu_unallocated_used_gpu_seconds_total", "GPU-full") != 0
    told = assignment(report)
    assert (report.node, told.gpu, told.pod_uid, told.share) == ("node-1", "GPU-half", "uid-1", 1_000_000)
    assert sum(hour.used for hour in told.hours) == pytest.approx(
        sum(hour.measured for hour in told.hours) / 2, rel=0.01
    )


async def test_ready_once_gpus_are_read_and_the_kubelet_has_told_who_holds_them(
    tmp_path: Path, kubelet: Kubelet
) -> None:
    kubelet.answers.clear()
    async with agent(tmp_path) as node:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (found := await ready(node.url)) != (503, "kubelet: no allocations reported yet\n"):
                assert found[0] in (0, 503)
                await asyncio.sleep(0.05)
        kubelet.answers.set()
        await until_ready(node.url, node.process)


async def ready(url: str) -> tuple[int, str]:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as response:
            return response.status, await response.text()
    except aiohttp.ClientError:
        return 0, ""


async def test_a_kubelet_that_comes_back_and_knows_no_pod_yet_ends_nothing(tmp_path: Path, kubelet: Kubelet) -> None:
    async with agent(tmp_path) as node:
        await node.until(lambda s: of(s, "gputally_container_gpu_share_ratio", OWNER))
        before = assignment(await node.usage())
        pods = kubelet.pods
        await kubelet.stop()
        await node.until(lambda s: of(s, "gputally_agent_kubelet_polls_total", "unreachable"))
        kubelet.pods = []
        await kubelet.start()
        polls = of(await samples_of(node.url), "gputally_agent_kubelet_polls_total", '"ok"') or 0
        await node.until(lambda s: (of(s, "gputally_agent_kubelet_polls_total", '"ok"') or 0) > polls)
        kubelet.pods = pods
        await node.until(lambda s: (of(s, "gputally_agent_kubelet_polls_total", '"ok"') or 0) > polls + 3)
        after = assignment(await node.usage())

    assert (after.since_us, after.until_us) == (before.since_us, None)


async def test_who_no_longer_holds_a_gpu_ends_and_stays_in_the_report(tmp_path: Path, kubelet: Kubelet) -> None:
    async with agent(tmp_path) as node:
        await node.until(lambda s: (of(s, "gputally_container_used_gpu_seconds_total", OWNER) or 0) > 0.5)
        kubelet.pods = [pod("ml/next", {"nvidia.com/gpu": ["GPU-half"]})]
        await node.until(lambda s: of(s, "gputally_container_gpu_share_ratio", 'pod="next"'))
        report = await node.usage()

    ended, begun = assignment(report), assignment(report, "next")
    assert ended.until_us == begun.since_us
    assert ended.seen_us < begun.since_us == begun.seen_us


async def test_a_gpu_that_is_no_longer_offered_is_unhealthy(tmp_path: Path, kubelet: Kubelet) -> None:
    kubelet.pods, kubelet.allocatable = [], {"nvidia.com/gpu": ["GPU-half", "GPU-full"]}
    async with agent(tmp_path) as node:
        await node.until(lambda s: of(s, "gputally_gpu_state_gpu_seconds_total", 'GPU-half",state="free"'))
        kubelet.allocatable = {"nvidia.com/gpu": ["GPU-full"]}
        samples = await node.until(
            lambda s: of(s, "gputally_gpu_state_gpu_seconds_total", 'GPU-half",state="unhealthy"')
        )

    assert of(samples, "gputally_gpu_state_gpu_seconds_total", 'GPU-full",state="unhealthy"') == 0


@pytest.mark.usefixtures("kubelet")
async def test_a_lost_gpu_is_down_alone_and_an_error_is_counted(tmp_path: Path) -> None:
    async with agent(tmp_path) as node:
        await node.until(lambda s: of(s, "gputally_gpu_up", "GPU-full"))
        at = node.now
        node.play(replace(HALF, xids=[Xid(at=at, code=79)]), replace(FULL, lost=at))
        samples = await node.until(lambda s: of(s, "gputally_gpu_up", "GPU-full") == 0)
        assert of(samples, "gputally_gpu_up", "GPU-half") == 1
        assert of(samples, "gputally_gpu_power_watts", "GPU-full") is None
        await node.until(lambda s: of(s, "gputally_gpu_xid_events_total", 'GPU-half",xid="79"'))
        assert of(samples, "gputally_gpu_xid_events_total", 'GPU-half",xid="48"') == 0


async def test_a_slice_is_measured_as_the_part_of_a_gpu_that_it_is(tmp_path: Path, kubelet: Kubelet) -> None:
    kubelet.pods = [pod("ml/train", {"nvidia.com/mig-1g.10gb": ["MIG-a"]})]
    async with agent(tmp_path, gpus=(SLICED,)) as node:
        samples = await node.until(lambda s: (of(s, "gputally_container_measured_gpu_seconds_total", OWNER) or 0) > 0.2)

    share = of(samples, "gputally_container_gpu_share_ratio", OWNER)
    measured = of(samples, "gputally_container_measured_gpu_seconds_total", OWNER)
    assert share == pytest.approx(1 / 7, abs=1e-6)
    assert of(samples, "gputally_container_used_gpu_seconds_total", OWNER) == pytest.approx(
        (measured or 0) / 4, rel=0.01
    )
    assert of(samples, "gputally_gpu_info", 'source="gpm"') == 1


@pytest.mark.usefixtures("kubelet")
async def test_an_aggregator_must_show_the_token_and_its_certificate(tmp_path: Path) -> None:
    certificates, token = Certificates(tmp_path), tmp_path / "token"
    token.write_text("secret\n")
    config = tmp_path / "web.yml"
    config.write_text("""
tls_server_config:
  cert_file: server.crt
  key_file: server.key
  client_ca_file: ca.crt
  client_auth_type: RequireAndVerifyClientCert
""")
    client, stranger = certificates.client_context("client"), certificates.client_context()
    async with (
        agent(tmp_path, "--web.config.file", config, "--usage.token-file", token) as node,
        aiohttp.ClientSession() as session,
    ):
        url = f"{node.url.replace('http', 'https', 1)}/v1/usage"
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await status(session, url, client, "secret") is None:  # noqa: ASYNC110 - it sends no signal
                await asyncio.sleep(0.05)
        found = [
            await status(session, url, *each) for each in ((client, "secret"), (client, "guess"), (stranger, "secret"))
        ]

    assert found == [200, 401, None]


async def status(session: aiohttp.ClientSession, url: str, tls: ssl.SSLContext, token: str) -> int | None:
    """None when there is no connection."""
    try:
        async with session.get(url, ssl=tls, headers={"Authorization": f"Bearer {token}"}) as response:
            return response.status
    except aiohttp.ClientError:
        return None


async def test_without_a_driver_it_says_where_to_run(tmp_path: Path) -> None:
    script = tmp_path / "nvml.script"
    Script(origin_us=0, gpus=(HALF,), init_error=9).write(script)
    ended = await done(await start(*command(tmp_path, 0), environment=environment(script)))

    assert ended.status == 7
    assert "runtimeClassName: nvidia" in ended.err
    assert "Traceback" not in ended.err


async def test_flags_that_cannot_be_are_told_all_at_once() -> None:
    flags = ("--web.listen-address", "nowhere", "--web.max-requests", "no", "--log.level", "loud")
    ended = await done(await start("agent", "--interval", "15", *flags))

    assert ended.status == 2
    assert [line.partition(":")[0] for line in ended.err.removeprefix("gputally: ").splitlines()] == [
        "--interval",
        "--web.listen-address",
        "--web.max-requests",
        "--log.level",
    ]


async def test_without_the_extra_it_names_what_to_install() -> None:
    program = "import sys; sys.modules['grpc.aio'] = None; from gputally.cli import main; sys.exit(main(['agent']))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=PIPE, stderr=PIPE)
    ended = await done(process)

    assert ended.status == 2
    assert ended.err == (
        "gputally: Python package grpc.aio: is not installed; the agent needs it: pip install 'gputally[agent]'\n"
    )
