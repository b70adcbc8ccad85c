"""All agents in turn: none waits for another, and what becomes of each is told once."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import pytest
from msgspec.structs import replace

from gputally.aggregator.agent_client import AgentClient, agent_client
from gputally.aggregator.agent_pulls import Puller
from gputally.aggregator.intake import Intake
from gputally.aggregator.settings import AgentOptions, Target
from gputally.model.health import AgentHealth, AgentsHealth
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Observation, UsageReported
from tests.core.manifests import us
from tests.core.usage import report
from tests.fakes.agent import FakeAgent, serving
from tests.fakes.until import until

AT_US = us(30)
SOON = 0.01


class Received(Intake):
    """Keeps what is put into it, which waits as long as it has no room."""

    def __init__(self) -> None:
        super().__init__()
        self.reports: list[UsageReported] = []
        self.room = asyncio.Event()
        self.room.set()

    async def put(self, batch: list[Observation], kind: Kind | None = None) -> None:
        assert kind is None
        self.reports += [each for each in batch if isinstance(each, UsageReported)]
        await self.room.wait()


class Pulling:
    """A puller with what it told."""

    def __init__(self, client: AgentClient) -> None:
        self.changed = asyncio.Event()
        self._targets: list[Target] = []
        self.health = AgentsHealth()
        self.intake = Received()
        self.puller = Puller(
            client,
            self.intake,
            targets=lambda: self.targets,
            changed=self.changed,
            health=self.health,
            clock=lambda: AT_US,
        )

    @property
    def targets(self) -> list[Target]:
        return self._targets

    @targets.setter
    def targets(self, targets: list[Target]) -> None:
        self._targets = targets
        self.changed.set()
        self.changed.clear()

    @property
    def told(self) -> list[UsageReported]:
        return self.intake.reports

    @property
    def room(self) -> asyncio.Event:
        return self.intake.room


@pytest.fixture
async def pulling() -> AsyncIterator[Pulling]:
    async with agent_client(AgentOptions()) as client:
        yield Pulling(client)


@pytest.fixture
async def agents() -> AsyncIterator[list[FakeAgent]]:
    """Of n0, n1 and n2; their clocks are five seconds behind, their watermarks two more."""
    async with AsyncExitStack() as stack:
        reports = [report(at=25, node=f"n{number}", watermark_us=us(23)) for number in range(3)]
        yield [await stack.enter_async_context(serving(FakeAgent(each))) for each in reports]


def targets(agents: list[FakeAgent]) -> list[Target]:
    return [Target(f"n{number}", agent.url) for number, agent in enumerate(agents)]


@pytest.fixture
async def running(pulling: Pulling) -> AsyncIterator[Pulling]:
    task = asyncio.create_task(pulling.puller.run(interval_s=SOON))
    yield pulling
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_what_an_agent_tells_is_handed_on_with_when_it_came(pulling: Pulling, agents: list[FakeAgent]) -> None:
    await pulling.puller.pull(targets(agents)[1])

    assert pulling.told == [UsageReported(report=agents[1].body, at_us=AT_US)]  # type: ignore[arg-type]  # it is a report
    assert pulling.health.agents == {"n1": AgentHealth(reachable=True, watermark_us=us(28))}
    assert pulling.health.pulls == {"answered": 1}


async def test_an_agent_that_fails_harms_no_other(running: Pulling, agents: list[FakeAgent]) -> None:
    agents[0].status = 500
    agents[1].complete.clear()
    running.targets = targets(agents)
    await until(lambda: len(running.told) > 3)

    assert {usage.report.node for usage in running.told} == {"n2"}
    assert not running.health.agents["n0"].reachable
    assert running.health.agents["n2"].reachable
    assert agents[1].requests == 1, "it was asked again before it had answered"


async def test_an_agent_whose_answer_is_not_taken_yet_is_not_asked_again(
    running: Pulling, agents: list[FakeAgent]
) -> None:
    running.room.clear()
    running.targets = targets(agents)[:1]
    await until(lambda: running.told)
    await asyncio.sleep(5 * SOON)
    assert agents[0].requests == 1

    running.room.set()
    await until(lambda: agents[0].requests > 1)


async def test_agents_come_and_go(running: Pulling, agents: list[FakeAgent]) -> None:
    running.targets = targets(agents)[:2]
    await until(lambda: running.health.agents.keys() == {"n0", "n1"})
    running.targets = targets(agents)[1:]
    await until(lambda: running.health.agents.keys() == {"n1", "n2"})

    running.targets = []
    await until(lambda: not running.health.agents)


async def test_a_failure_is_told_once_until_it_changes_and_then_that_it_goes_on(
    pulling: Pulling, agents: list[FakeAgent], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="gputally.aggregator.agent_pulls")
    target, agent = targets(agents)[0], agents[0]
    for status in (500, 500, 503):
        agent.status = status
        await pulling.puller.pull(target)
    agent.status = 200
    for _ in range(2):
        await pulling.puller.pull(target)

    assert [record.getMessage() for record in caplog.records if record.name == "gputally.aggregator.agent_pulls"] == [
        f"agent on n0: {agent.url}/v1/usage: responds with 500 instead of a report",
        f"agent on n0: {agent.url}/v1/usage: responds with 503 instead of a report",
        "agent on n0: recovered",
    ]
    assert pulling.health.pulls == {"status": 3, "answered": 2}


async def test_an_agent_that_failed_keeps_its_watermark(pulling: Pulling, agents: list[FakeAgent]) -> None:
    await pulling.puller.pull(targets(agents)[0])
    agents[0].body = replace(report(at=25), node="other")
    await pulling.puller.pull(targets(agents)[0])

    assert pulling.health.agents == {"n0": AgentHealth(reachable=False, watermark_us=us(28))}
    assert pulling.health.pulls == {"answered": 1, "node": 1}
