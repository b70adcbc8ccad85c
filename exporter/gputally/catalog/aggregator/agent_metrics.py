"""Health of the agent pulls, as part of the exporter's own health."""

from collections.abc import Iterator

from gputally.catalog.metric import Metric, MetricType, Row
from gputally.model.health import Health
from gputally.model.units import US_PER_SECOND
from gputally.model.usage import PullOutcome


def _states(health: Health) -> Iterator[Row]:
    reachable = sum(agent.reachable for agent in health.agents.agents.values())
    yield Row(("reachable",), reachable)
    yield Row(("unreachable",), len(health.agents.agents) - reachable)


def _watermark(health: Health) -> Iterator[Row]:
    """No row without an agent: any timestamp would be wrong."""
    agents = health.agents.agents.values()
    marks = [agent.watermark_us for agent in agents if agent.reachable and agent.watermark_us is not None]
    if marks:
        yield Row((), min(marks) / US_PER_SECOND)


AGENTS = Metric[Health](
    name="gputally_agents",
    kind=MetricType.GAUGE,
    help="Known agents, by whether they responded to the last pull.",
    labels=("state",),
    rows=_states,
)

AGENT_PULLS = Metric[Health](
    name="gputally_agent_pulls_total",
    kind=MetricType.COUNTER,
    help="Requests to agents by outcome.",
    labels=("outcome",),
    rows=lambda health: (Row((outcome.value,), health.agents.pulls.get(outcome.value, 0)) for outcome in PullOutcome),
)

AGENTS_WATERMARK = Metric[Health](
    name="gputally_agents_watermark_timestamp_seconds",
    kind=MetricType.GAUGE,
    help="Time up to which the slowest reachable agent has measured its node.",
    rows=_watermark,
)

METRICS = (AGENTS, AGENT_PULLS, AGENTS_WATERMARK)
