"""The command line: a table of the commands, of which only the chosen one is imported."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from gputally import __version__
from gputally.errors import GputallyError
from gputally.model.printable import printable
from gputally.process.settings import Parser

_PLUGIN = "kubectl gputally"
_STATUSES = (
    "exit status: 0 success, or stopped by a signal; 1 a bug, with a traceback (posture: findings); "
    "2 flags, configuration or prices; 3 API server; 4 ledger; 5 address in use; 7 NVIDIA driver; "
    "8 aggregator; 9 rows rejected; 10 webhook; 12 no such pod; 130 interrupted"
)


class Command(NamedTuple):
    """A command and its line in `gputally --help`.

    `flags` is the function, as MODULE:NAME, that adds the flags to a parser, and as the default of `run` what gets the
    parsed flags and returns the exit status. As `kubectl gputally`, a command that `runs_in_pod` runs in the
    aggregator's pod, where the ledger is.
    """

    name: str
    summary: str
    flags: str
    runs_in_pod: bool = False


COMMANDS: Final = (
    Command(
        "aggregator",
        "watch a cluster, account its GPUs and serve metrics",
        "gputally.commands.aggregator:add_aggregator_flags",
    ),
    Command(
        "agent",
        "measure the GPUs of this node and their usage by container",
        "gputally.commands.agent:add_agent_flags",
    ),
    Command(
        "top",
        "show who holds which GPUs now, and what they cost per hour",
        "gputally.commands.top:add_top_flags",
    ),
    Command(
        "why",
        "say why a pod waits for GPUs, and what would help",
        "gputally.commands.why:add_why_flags",
    ),
    Command(
        "what-if",
        "say whether pods would fit now, and whom they would evict",
        "gputally.commands.what_if:add_what_if_flags",
    ),
    Command(
        "fits",
        "say what pod sizes fit now, and why free GPUs are stranded",
        "gputally.commands.fits:add_fits_flags",
    ),
    Command(
        "demo",
        "run the aggregator on a simulated cluster; needs no real one",
        "gputally.commands.demo:add_demo_flags",
    ),
    Command(
        "report",
        "report GPU-hours and cost of a period, from a ledger",
        "gputally.commands.report:add_report_flags",
        runs_in_pod=True,
    ),
    Command(
        "explain",
        "explain a number of a report: its allocations, prices and dates",
        "gputally.commands.explain:add_explain_flags",
        runs_in_pod=True,
    ),
    Command(
        "rerate",
        "compare what a period costs by another price book, or without spot",
        "gputally.commands.rerate:add_rerate_flags",
        runs_in_pod=True,
    ),
    Command(
        "preemptions",
        "list pods that were preempted, evicted or lost with their node",
        "gputally.commands.preemptions:add_preemptions_flags",
        runs_in_pod=True,
    ),
    Command(
        "waits",
        "report how long pods waited for GPUs, for what and at what cost",
        "gputally.commands.waits:add_waits_flags",
        runs_in_pod=True,
    ),
    Command(
        "periods",
        "list closed periods, or show the invoice of one",
        "gputally.commands.periods:add_periods_flags",
        runs_in_pod=True,
    ),
    Command(
        "budgets",
        "show what is spent of each budget, and what is forecast",
        "gputally.commands.budgets:add_budgets_flags",
        runs_in_pod=True,
    ),
    Command(
        "showback",
        "deliver the report of each tenant, as files or to a webhook",
        "gputally.commands.showback:add_showback_flags",
    ),
    Command(
        "import",
        "import jobs of the time before the installation",
        "gputally.commands.imports:add_import_flags",
    ),
    Command(
        "ledger",
        "inspect, check and query a ledger, also while it is written",
        "gputally.commands.ledger:add_ledger_commands",
        runs_in_pod=True,
    ),
    Command(
        "backup",
        "back up a ledger, also while it is written",
        "gputally.commands.backup:add_backup_flags",
    ),
    Command(
        "restore",
        "replace a ledger by its backup",
        "gputally.commands.restore:add_restore_flags",
    ),
    Command(
        "posture",
        "say who may preempt whom in a cluster or in manifests, and check it",
        "gputally.commands.posture:add_posture_flags",
    ),
    Command(
        "check",
        "check configurations and price books, report all problems",
        "gputally.commands.check:add_check_flags",
    ),
)
"""In the order of `gputally --help`."""


class CommandParser(Parser):
    """The parser of one command, whose module is imported when there are arguments to parse."""

    flags = ""
    """Names the function that adds the command's flags, as `module:function`; "" once they are added."""

    def complete(self) -> None:
        """Import the command's module, and add its flags; the second time, do nothing."""
        if self.flags:
            (module, _, name), self.flags = self.flags.partition(":"), ""
            getattr(import_module(module), name)(self)

    def parse_known_args(  # type: ignore[override]  # as in `Parser`
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Add the flags first."""
        self.complete()
        return super().parse_known_args(args, namespace)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. A GputallyError becomes one message; all else is a bug."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return _run_plugin(given) if _program() == _PLUGIN else _run(given)
    except GputallyError as error:
        sys.stderr.write("gputally: " + "".join(f"{printable(line)}\n" for line in str(error).splitlines() or [""]))
        return error.exit_status
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def parser() -> argparse.ArgumentParser:
    """The whole command line; each command adds its flags when it is parsed."""
    root = Parser(
        prog=_program(), description="Exact GPU accounting for Kubernetes.", epilog=_STATUSES, allow_abbrev=False
    )
    root.add_argument("--version", action="version", version=f"gputally {__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=CommandParser)
    for each in COMMANDS:
        description = f"{each.summary[0].upper()}{each.summary[1:]}."
        command = commands.add_parser(each.name, help=each.summary, description=description, allow_abbrev=False)
        command.flags = each.flags
    return root


def _run(given: Sequence[str]) -> int:
    parsed = parser().parse_args(given)
    status: int = parsed.run(parsed)
    return status


def _run_plugin(given: Sequence[str]) -> int:
    """Run the command in the aggregator's pod, if it needs the ledger there; otherwise here."""
    from gputally.commands.in_pod import remote_command, run_remotely  # noqa: PLC0415 - only the plugin does so

    remote = remote_command(given, {each.name for each in COMMANDS if each.runs_in_pod})
    return run_remotely(remote) if remote else _run(given)


def _program() -> str:
    """`kubectl gputally` if kubectl runs it as its plugin."""
    return _PLUGIN if Path(sys.argv[0]).name == "kubectl-gputally" else "gputally"
