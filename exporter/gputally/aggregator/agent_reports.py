"""From the agents into the books."""

from collections.abc import Callable

from gputally.aggregator.books import Books
from gputally.model.observation import UsageSeen
from gputally.process.clock import Clock
from gputally.pulling.agent_client import AgentClient
from gputally.pulling.choice import AgentChoice, Target
from gputally.pulling.pull import Puller


def puller(client: AgentClient, books: Books, choice: AgentChoice, *, clock: Clock) -> Puller:
    """What pulls the agents that `choice` names and the watch of pods finds; what they tell goes into the backlog."""

    async def deliver(usage: UsageSeen) -> None:
        await books.backlog.put([usage])

    return Puller(client, deliver, targets=_targets(books, choice), health=books.health.agents, clock=clock)


def _targets(books: Books, choice: AgentChoice) -> Callable[[], list[Target]]:
    return lambda: choice.targets(books.fleet.agents.on_nodes())
