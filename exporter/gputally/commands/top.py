"""`gputally top` shows who holds which GPUs now, and what they cost per hour."""

import argparse

from gputally.client.access import add_access
from gputally.output.allocation_groups import BY
from gputally.process.command import needing, run_until_stopped
from gputally.process.settings import add_epilog

EXAMPLES = """\
examples:
  gputally top                            live, through kubectl and the current context
  gputally top --by job                   who runs what, the most GPUs first
  gputally top --once --by tenant         one table, for scripts and chat
  gputally top --url http://gpu.example:9836 --output json | jq '.pods[] | select(.state == "pending")'

keys: t tier, e tenant, j job, n node, m model, p pod, q quit
"""


def add_top_flags(command: argparse.ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_top)
    add_epilog(command, EXAMPLES)
    add = command.add_argument
    add("--by", choices=tuple(BY), default="tier", help="what a row stands for [default: tier]")
    add("--once", action="store_true", help="print one table and exit; so does output to a file or pipe")
    add("--output", choices=("table", "json"), default="table", help="json prints the response of /api/v1/allocations")
    add("--interval", type=float, metavar="SECONDS", default=2.0, help="time between two requests [default: 2]")
    add_access(command)


def _top(parsed: argparse.Namespace) -> int:
    """Show the allocations, once or live."""
    with needing("gputally top needs it: pip install 'gputally[terminal]'"):
        from gputally.commands.from_aggregator.top import options_from, run  # noqa: PLC0415 - needs the extra `terminal`

    options = options_from(parsed)
    return run_until_stopped(lambda: run(options))
