"""Delivers agent reports to the intake."""

from collections.abc import Callable

from gputally.aggregator.pipeline import Pipeline
from gputally.model.observation import UsageReported
from gputally.process.clock import Clock
from gputally.pulling.agent_client import AgentClient
from gputally.pulling.agent_options import AgentOptions, Target
from gputally.pulling.pull import Puller


def puller(client: AgentClient, pipeline: Pipeline, choice: AgentOptions, *, clock: Clock) -> Puller:
    """A puller for the agents in `choice` and those found by the pod watch; it puts their reports into the intake."""

    async def deliver(usage: UsageReported) -> None:
        await pipeline.intake.put([usage])

    return Puller(client, deliver, targets=_targets(pipeline, choice), health=pipeline.health.agents, clock=clock)


def _targets(pipeline: Pipeline, choice: AgentOptions) -> Callable[[], list[Target]]:
    return lambda: choice.targets(pipeline.fleet.agents.on_nodes())
