"""Pulling all agents for ever, spread over the interval; one that fails harms no other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from gputally.model.agent_pod import Outcome
from gputally.model.health import AgentHealth, AgentsHealth
from gputally.model.measured.usage_report import UsageReport
from gputally.model.observation import UsageReported
from gputally.process.once import Once
from gputally.pulling.agent_client import AgentClient, PullFailed
from gputally.pulling.choice import Target

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
"""How long to wait, while no agent is known, before looking again."""


class Puller:
    """Pulls the `targets` of the moment, and gives what they tell to `deliver`. Time (µs) is by `clock`."""

    def __init__(
        self,
        client: AgentClient,
        deliver: Callable[[UsageReported], Awaitable[None]],
        *,
        targets: Callable[[], Iterable[Target]],
        health: AgentsHealth,
        clock: Callable[[], int],
    ) -> None:
        self._client = client
        self._deliver = deliver
        self._targets = targets
        self._health = health
        self._clock = clock
        self._busy: set[str] = set()
        self._trouble: dict[str, Once] = {}

    async def run(self, *, interval_s: float) -> None:
        """For ever: each agent once in an interval, and none again before its last answer is taken."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                targets = list(self._targets())
                self._forget_others(targets)
                for target in targets:
                    if target.node not in self._busy:
                        self._busy.add(target.node)
                        tasks.create_task(self.pull(target), name=f"pull {target.node}")
                    await asyncio.sleep(interval_s / len(targets))
                if not targets:
                    await asyncio.sleep(min(_LOOK_SECONDS, interval_s))

    async def pull(self, target: Target) -> None:
        """Ask one agent, once."""
        trouble = self._trouble.setdefault(target.node, Once(logger, f"agent on {target.node}", node=target.node))
        try:
            report = await self._client.report(target)
        except PullFailed as error:
            self._count(error.outcome)
            self._agent(target).reachable = False
            trouble.warn(str(error))
        else:
            self._count(Outcome.ANSWERED)
            trouble.forget()
            at_us = self._clock()
            self._answered(target, report, at_us)
            await self._deliver(UsageReported(report=report, at_us=at_us))
        finally:
            self._busy.discard(target.node)

    def _answered(self, target: Target, report: UsageReport, at_us: int) -> None:
        agent = self._agent(target)
        agent.reachable = True
        agent.watermark_us = report.watermark_us - (report.now_us - at_us)

    def _agent(self, target: Target) -> AgentHealth:
        return self._health.agents.setdefault(target.node, AgentHealth(reachable=False))

    def _count(self, outcome: Outcome) -> None:
        self._health.pulls[outcome.value] = self._health.pulls.get(outcome.value, 0) + 1

    def _forget_others(self, targets: Iterable[Target]) -> None:
        """Forget the agents that are no targets any more."""
        gone = self._health.agents.keys() - {target.node for target in targets}
        for node in gone:
            del self._health.agents[node]
            self._trouble.pop(node, None)
