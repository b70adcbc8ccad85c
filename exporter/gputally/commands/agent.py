"""`gputally agent` measures the GPUs of a node and their usage by container."""

from argparse import ArgumentParser, Namespace

from gputally.agent.agent_settings import SETTINGS, agent_settings_from
from gputally.process.command import needing, run_until_stopped
from gputally.process.log import configure
from gputally.process.settings import add_flags


def add_agent_flags(command: ArgumentParser) -> None:
    """Add a flag for each setting."""
    command.set_defaults(run=_agent)
    add_flags(command, SETTINGS)


def _agent(parsed: Namespace) -> int:
    """Run the agent of this node until it is asked to stop."""
    with needing("the agent needs it: pip install 'gputally[agent]'"):
        from gputally.agent.agent import run_agent  # noqa: PLC0415 - needs the extra `agent`

    chosen = agent_settings_from(vars(parsed))
    configure(level=chosen.log_level, form=chosen.log_format)
    return run_until_stopped(lambda: run_agent(chosen))
