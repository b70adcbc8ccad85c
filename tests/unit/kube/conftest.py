"""One watch of pods against a scripted server, with a clock and pauses in the test's hands."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random

import pytest

from gputally.kube.api import Access, Api, new_session
from gputally.kube.failures import Backoff
from gputally.kube.reflector import run_reflector
from gputally.kube.watched import Resource
from gputally.model.health import WatchHealth
from gputally.model.kube.kinds import Kind
from gputally.model.kube.pods import Pod
from gputally.model.observation import Checkpoint, Observation
from tests.fakes.certificates import Certificates
from tests.fakes.scripted_api import PATIENCE_SECONDS, ScriptedApi, serving

PODS = Resource(
    kind=Kind.PODS, path="/api/v1/pods", type=Pod, keep=lambda found: not found.metadata.name.startswith("web")
)


class Clock:
    """Stands still until the test moves it (µs)."""

    def __init__(self) -> None:
        self.now = 60_000_000

    def __call__(self) -> int:
        return self.now


class Seconds:
    """A monotonic clock that stands still until the test moves it (s)."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Watcher:
    """Runs `run_reflector` in the background and hands out what it tells."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self.health = WatchHealth(kind=Kind.PODS)
        self.pauses: list[float] = []
        self.task: asyncio.Task[None] | None = None
        self._api = api
        self.clock = clock
        self._told: asyncio.Queue[Observation] = asyncio.Queue()

    def start(self, resource: Resource = PODS, resume: Checkpoint | None = None) -> None:
        self.task = asyncio.create_task(self._run(resource, resume))

    async def next(self) -> Observation:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._told.get()

    async def take(self, count: int) -> list[Observation]:
        return [await self.next() for _ in range(count)]

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():  # noqa: ASYNC110 - plain state has no event to wait for
                await asyncio.sleep(0)

    async def _run(self, resource: Resource, resume: Checkpoint | None) -> None:
        backoff = Backoff(Random(1), self._sleep)
        feed = run_reflector(self._api, resource, health=self.health, clock=self.clock, backoff=backoff, resume=resume)
        async for batch in feed:
            for observation in batch:
                self._told.put_nowait(observation)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
async def server() -> AsyncIterator[ScriptedApi]:
    async with serving() as scripted:
        yield scripted


@pytest.fixture
async def api(server: ScriptedApi) -> AsyncIterator[Api]:
    access = Access(server=server.url, login="the test", authorization=lambda: "")
    async with new_session() as session:
        yield Api(session, access, reread=lambda: access)


@pytest.fixture
async def watcher(api: Api, clock: Clock) -> AsyncIterator[Watcher]:
    watcher = Watcher(api, clock)
    yield watcher
    if watcher.task:
        watcher.task.cancel()
        await asyncio.gather(watcher.task, return_exceptions=True)


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The machine's own clusters and proxies stay out of the tests."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))
