"""Pulls all agents periodically, spread over the interval; a failing agent does not affect others."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from gputally.aggregator.agent_client import AgentClient, PullFailed
from gputally.aggregator.intake import Intake
from gputally.aggregator.pipeline import Pipeline
from gputally.aggregator.settings import AgentOptions, Target
from gputally.model.health import AgentHealth, AgentsHealth
from gputally.model.observation import UsageReported
from gputally.model.usage import PullOutcome, UsageReport
from gputally.process.clock import Clock
from gputally.process.log import Once

logger = logging.getLogger(__name__)


class Puller:
    """Pulls the current `targets`, and puts their reports into `intake`, with the time (µs) from `clock`.

    While there are none, `changed` wakes it when there may be some.
    """

    def __init__(
        self,
        client: AgentClient,
        intake: Intake,
        *,
        targets: Callable[[], Iterable[Target]],
        changed: asyncio.Event,
        health: AgentsHealth,
        clock: Callable[[], int],
    ) -> None:
        self._client = client
        self._intake = intake
        self._targets = targets
        self._changed = changed
        self._health = health
        self._clock = clock
        self._busy: set[str] = set()
        self._warnings: dict[str, Once] = {}

    async def run(self, *, interval_s: float) -> None:
        """Pull each agent once per interval until cancelled; skip an agent while its last pull is in progress."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                targets = list(self._targets())
                self._remove_others(targets)
                for target in targets:
                    if target.node not in self._busy:
                        self._busy.add(target.node)
                        tasks.create_task(self.pull(target), name=f"pull {target.node}")
                    await asyncio.sleep(interval_s / len(targets))
                if not targets:
                    await self._changed.wait()

    async def pull(self, target: Target) -> None:
        """Pull one agent once."""
        warnings = self._warnings.setdefault(target.node, Once(logger, f"agent on {target.node}", node=target.node))
        try:
            report = await self._client.report(target)
        except PullFailed as error:
            self._count(error.outcome)
            self._agent(target).reachable = False
            warnings.warn(str(error))
        else:
            self._count(PullOutcome.ANSWERED)
            warnings.forget()
            at_us = self._clock()
            self._record_success(target, report, at_us)
            await self._intake.put([UsageReported(report=report, at_us=at_us)])
        finally:
            self._busy.discard(target.node)

    def _record_success(self, target: Target, report: UsageReport, at_us: int) -> None:
        agent = self._agent(target)
        agent.reachable = True
        agent.watermark_us = report.watermark_us - (report.now_us - at_us)

    def _agent(self, target: Target) -> AgentHealth:
        return self._health.agents.setdefault(target.node, AgentHealth(reachable=False))

    def _count(self, outcome: PullOutcome) -> None:
        self._health.pulls[outcome.value] = self._health.pulls.get(outcome.value, 0) + 1

    def _remove_others(self, targets: Iterable[Target]) -> None:
        """Remove agents that are no longer targets."""
        removed = self._health.agents.keys() - {target.node for target in targets}
        for node in removed:
            del self._health.agents[node]
            self._warnings.pop(node, None)


def puller(client: AgentClient, pipeline: Pipeline, choice: AgentOptions, *, clock: Clock) -> Puller:
    """A puller for the agents in `choice` and those found by the pod watch; it puts their reports into the intake."""
    found, changed = partial(_targets, pipeline, choice), pipeline.accountant.reconciled
    return Puller(client, pipeline.intake, targets=found, changed=changed, health=pipeline.health.agents, clock=clock)


def _targets(pipeline: Pipeline, choice: AgentOptions) -> list[Target]:
    usage = pipeline.fleet.usage
    return [each._replace(since=usage.cursor(each.node)) for each in choice.targets(pipeline.fleet.agents_on_nodes())]
