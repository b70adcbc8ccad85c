"""The command line: read, call, print."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gputally import __version__
from gputally.agent import agent_settings
from gputally.aggregator import settings
from gputally.errors import ConfigError, GputallyError, Problem
from gputally.ledger_commands.budgets.budgets_flags import add_budgets_command
from gputally.ledger_commands.explain.explain_flags import add_explain_command
from gputally.ledger_commands.import_flags import add_import_command
from gputally.ledger_commands.in_pod import remote_command, run_remotely
from gputally.ledger_commands.invoices.period_flags import add_periods_command
from gputally.ledger_commands.ledger_flags import add_ledger_commands
from gputally.ledger_commands.preemptions.preemption_flags import add_preemptions_command
from gputally.ledger_commands.report.report_flags import add_report_command
from gputally.ledger_commands.rerate.rerate_flags import add_rerate_command
from gputally.ledger_commands.waits.wait_flags import add_waits_command
from gputally.model.printable import printable
from gputally.posture_command.posture_flags import add_posture_command
from gputally.setting import Parser, add_flags
from gputally.why_command.why_flags import add_fits_command, add_what_if_command, add_why_command

_PLUGIN = "kubectl gputally"
_STATUSES = (
    "exit status: 0 success, or stopped by a signal; 1 a bug, with a traceback (posture: findings); "
    "2 flags, configuration or prices; 3 API server; 4 ledger; 5 address in use; 7 NVIDIA driver; "
    "8 aggregator; 9 rows rejected; 10 webhook; 12 no such pod; 130 interrupted"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. A GputallyError becomes one message; all else is a bug."""
    given = sys.argv[1:] if arguments is None else arguments
    remote = remote_command(given) if _program() == _PLUGIN else None
    parsed = None if remote else parser().parse_args(given)
    try:
        status: int = parsed.run(parsed) if parsed else run_remotely(remote or ())
    except GputallyError as error:
        sys.stderr.write("gputally: " + "".join(f"{printable(line)}\n" for line in str(error).splitlines() or [""]))
        return error.exit_status
    except BrokenPipeError:  # the reader of our output, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return status


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = Parser(
        prog=_program(), description="Exact GPU accounting for Kubernetes.", epilog=_STATUSES, allow_abbrev=False
    )
    root.add_argument("--version", action="version", version=f"gputally {__version__}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)

    watch = _command(commands, "aggregator", aggregator, "watch a cluster, account its GPUs and serve metrics")
    add_flags(watch, settings.SETTINGS)
    measure = _command(commands, "agent", agent, "measure the GPUs of this node and their usage by container")
    add_flags(measure, agent_settings.SETTINGS)
    _add_top_flags(_command(commands, "top", top, "show who holds which GPUs now, and what they cost per hour"))
    add_why_command(commands)
    add_what_if_command(commands)
    add_fits_command(commands)
    _add_demo_flags(_command(commands, "demo", demo, "run the aggregator on a simulated cluster; needs no real one"))
    add_report_command(commands)
    add_explain_command(commands)
    add_rerate_command(commands)
    add_preemptions_command(commands)
    add_waits_command(commands)
    add_periods_command(commands)
    add_budgets_command(commands)
    _add_showback_flags(
        _command(commands, "showback", showback, "deliver the report of each tenant, as files or to a webhook")
    )
    add_import_command(commands)
    add_ledger_commands(commands)
    add_posture_command(commands)
    _add_check_flags(_command(commands, "check", check, "check configurations and price books, report all problems"))
    return root


_CHECK_EXAMPLES = """\
examples:
  gputally check config.yaml prices.yaml
  helm template . --show-only templates/files.yaml | yq '.data["config.yaml"]' | gputally check -
  gputally check --output json *.yaml | jq '.problems[] | .file + ": " + .text'

Price books are also checked against the tiers of a configuration that is named beside them.
"""


def _add_check_flags(command: argparse.ArgumentParser) -> None:
    command.epilog, command.formatter_class = _CHECK_EXAMPLES, argparse.RawDescriptionHelpFormatter
    add = command.add_argument
    add("--output", choices=("text", "json"), default="text", help="json prints one document [default: text]")
    add("files", nargs="+", type=Path, metavar="FILE", help="a Configuration or PriceBook (YAML); - is standard input")


def _program() -> str:
    """`kubectl gputally` if kubectl runs it as its plugin."""
    return _PLUGIN if Path(sys.argv[0]).name == "kubectl-gputally" else "gputally"


def _add_demo_flags(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--for", dest="duration", metavar="TIME", default="", help="stop after e.g. 30s or 5m; without it, at Ctrl-C")
    add(
        "--web.listen-address",
        dest="address",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        help="address that serves /metrics; port 0 selects a free port [default: %(default)s]",
    )
    add(
        "--ledger", metavar="FILE", type=Path, help="keep the ledger in this file; by default, it is deleted at the end"
    )
    add("--seed", type=int, metavar="N", default=1, help="random seed of the simulation [default: 1]")
    add(
        "--speed",
        type=float,
        metavar="X",
        default=600.0,
        help="simulated seconds per second; 600 is a day in 2.4 minutes [default: 600]",
    )
    shown = command.add_mutually_exclusive_group().add_argument
    shown(
        "--scenario",
        choices=("s1", "s2", "waits"),
        default="s1",
        help="s1: inference by day, training by night; s2: four tiers, tenants with quotas; waits: pods that wait for "
        "different reasons, such as deadlocked gangs and inverted priorities [default: s1]",
    )
    shown("--trace", metavar="FILE", type=Path, help="replay the pods of this CSV instead, to its end")
    add(
        "--trace-nodes",
        metavar="FILE",
        type=Path,
        help="nodes for the replay (CSV); without it, they join when needed",
    )
    add("--chaos", action="store_true", help="inject random faults of connections, API server, nodes and clocks")


def aggregator(parsed: argparse.Namespace) -> int:
    """Run the aggregator until it is asked to stop."""
    from gputally.process.freed_memory import return_freed_memory  # noqa: PLC0415 - not needed by other commands

    return_freed_memory()
    from gputally.aggregator.aggregator import aggregate  # noqa: PLC0415 - heavy
    from gputally.process.log import configure  # noqa: PLC0415

    chosen = settings.settings_from(vars(parsed))
    configure(level=chosen.log_level, form=chosen.log_format)
    return _until_stopped(lambda: aggregate(chosen))


@contextmanager
def _needing(remedy: str) -> Iterator[None]:
    """Import an optional dependency. Raises: ConfigError with the package and the `remedy`."""
    try:
        yield
    except ModuleNotFoundError as error:
        problem = Problem("", f"Python package {error.name}", f"is not installed; {remedy}")
        raise ConfigError([problem]) from None


def agent(parsed: argparse.Namespace) -> int:
    """Run the agent of this node until it is asked to stop."""
    with _needing("the agent needs it: pip install 'gputally[agent]'"):
        from gputally.agent.agent import run_agent  # noqa: PLC0415 - heavy, and needs the extra `agent`
    from gputally.process.log import configure  # noqa: PLC0415 - as above

    chosen = agent_settings.agent_settings_from(vars(parsed))
    configure(level=chosen.log_level, form=chosen.log_format)
    return _until_stopped(lambda: run_agent(chosen))


def demo(parsed: argparse.Namespace) -> int:
    """Run the demo until it is over or asked to stop."""
    with _needing("the demo needs it: in a clone of gputally, pip install ./simulator"):
        from gputally.demo.demo import run, seconds  # noqa: PLC0415 - heavy, and needs the simulator
        from gputally.demo.plan import Demo  # noqa: PLC0415

    plan = Demo(
        address=parsed.address,
        ledger=parsed.ledger,
        seed=parsed.seed,
        speed=parsed.speed,
        scenario=parsed.scenario,
        duration_s=seconds(parsed.duration),
        trace=parsed.trace,
        trace_nodes=parsed.trace_nodes,
        chaos=parsed.chaos,
    )
    return _until_stopped(lambda: run(plan))


def _add_top_flags(command: argparse.ArgumentParser) -> None:
    from gputally.top.flags import add_flags as add_top_flags  # noqa: PLC0415 - other commands need none of it

    add_top_flags(command)


def top(parsed: argparse.Namespace) -> int:
    """Show the allocations, once or live."""
    with _needing("gputally top needs it: pip install 'gputally[terminal]'"):
        from gputally.top.top import run  # noqa: PLC0415 - heavy, and needs the extra `terminal`
    from gputally.top.flags import options_from  # noqa: PLC0415

    options = options_from(parsed)
    return _until_stopped(lambda: run(options))


def _add_showback_flags(command: argparse.ArgumentParser) -> None:
    from gputally.showback.showback_flags import add_showback_flags  # noqa: PLC0415 - other commands need none of it

    add_showback_flags(command)


def showback(parsed: argparse.Namespace) -> int:
    """Deliver the report of each tenant."""
    from gputally.showback.showback import showback as deliver  # noqa: PLC0415 - heavy
    from gputally.showback.showback_flags import showback_options  # noqa: PLC0415

    options = showback_options(parsed)
    return _until_stopped(lambda: deliver(options))


def check(parsed: argparse.Namespace) -> int:
    """Report all problems of the files."""
    from gputally.config.check import check as problems_of  # noqa: PLC0415 - heavy
    from gputally.config.check import document_of  # noqa: PLC0415

    problems = problems_of(parsed.files)
    count = len(parsed.files)
    if parsed.output == "json":
        sys.stdout.write(document_of(problems, files=count))
        return 2 if problems else 0
    for problem in problems:
        sys.stderr.write(f"{printable(str(problem))}\n")
    if not problems:
        sys.stdout.write(f"{count} file{'s' if count > 1 else ''} checked, no problems\n")
    return 2 if problems else 0


def _command(
    commands: "argparse._SubParsersAction[Parser]",
    name: str,
    run: Callable[[argparse.Namespace], int],
    summary: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    command.set_defaults(run=run)
    return command


def _until_stopped(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Run `work` to its end, or until SIGINT, SIGTERM or a closed terminal (SIGHUP) asks it to end cleanly."""

    async def stoppable() -> None:
        task = asyncio.create_task(work(), name="main")
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(each, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelling():
                raise  # not cancelled by a signal
        except BaseExceptionGroup as group:
            raise _single_error(group) from None

    asyncio.run(stoppable())
    return 0


def _single_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error to report to the user, if the group contains only such errors; otherwise the group."""
    fixable, bugs = group.split((GputallyError, BrokenPipeError))
    if fixable is None or bugs:
        return group
    error: BaseException = fixable
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
