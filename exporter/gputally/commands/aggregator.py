"""`gputally aggregator` watches a cluster, accounts its GPUs and serves metrics."""

from argparse import ArgumentParser, Namespace

from gputally.aggregator import settings
from gputally.process.command import return_freed_memory, run_until_stopped
from gputally.process.log import configure
from gputally.process.settings import add_flags


def add_aggregator_flags(command: ArgumentParser) -> None:
    """Add a flag for each setting."""
    command.set_defaults(run=_aggregator)
    add_flags(command, settings.SETTINGS)


def _aggregator(parsed: Namespace) -> int:
    """Run the aggregator until it is asked to stop."""
    return_freed_memory()
    from gputally.aggregator.aggregator import aggregate  # noqa: PLC0415 - after that call, and heavy

    chosen = settings.settings_from(vars(parsed))
    configure(level=chosen.log_level, form=chosen.log_format)
    return run_until_stopped(lambda: aggregate(chosen))
