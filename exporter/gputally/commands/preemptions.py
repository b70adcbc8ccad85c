"""`gputally preemptions` lists pods that lost their GPUs involuntarily."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.commands.in_pod import LEDGER, PLUGIN_HELP
from gputally.commands.output_flags import add_output_flag
from gputally.commands.scope_flags import PERIODS, ScopeOptions, add_scope_flags
from gputally.model.disruptions import Cause
from gputally.process.settings import add_epilog, add_flags

_USUAL: Final = tuple(cause for cause in Cause if cause not in (Cause.DELETION, Cause.CONTAINER_RESTART))
"""The causes that are listed by default, without the two of which a cluster may have many: who deletes a pod wants its
end, and a pod that restarts keeps its GPUs."""
_EXAMPLES: Final = f"""\
Lists pods that lost their GPUs before they had ended by themselves: when and why, which tier took the GPUs, and how
long it took until the containers had stopped and until a replacement ran. Works beside a running aggregator: it never
blocks it and changes nothing.

With --by job it lists one record for each job and time: by which tiers and which rule, what it cost, and what would
have prevented it or made it cheaper.

columns for --where: tier, tenant, namespace, pod, job_kind, job and node of the victim
causes: {", ".join(Cause)}

{PERIODS}
{PLUGIN_HELP}
examples:
  gputally preemptions --window 7d --where tenant=research --ledger gputally.db
  gputally preemptions --window 2026-10 --cause spot_reclaim --output csv
  gputally preemptions --window 7d --by job --where tenant=research
  kubectl gputally preemptions --window today --where namespace=ml --where job=train
"""


def add_preemptions_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_preemptions)
    add_epilog(command, _EXAMPLES)
    add_flags(command, (LEDGER,))
    add_scope_flags(command)
    add = command.add_argument
    add("--by", choices=("pod", "job"), default="pod", help="what a row stands for [default: pod]")
    add(
        "--cause",
        type=Cause,
        choices=tuple(Cause),
        metavar="CAUSE",
        action="append",
        help="only this cause; may be repeated [default: all but deletion and container_restart]",
    )
    add("--tiers-only", action="store_true", help="of preemptors show only the tier, no namespace and name")
    add_output_flag(command)


def _preemptions(parsed: Namespace) -> int:
    from gputally.commands.from_ledger.preemptions import PreemptionOptions, list_preemptions  # noqa: PLC0415 - for --help the flags suffice

    options = PreemptionOptions(
        scope=ScopeOptions.of(parsed),
        by=parsed.by,
        causes=frozenset(parsed.cause or (_USUAL if parsed.by == "pod" else (Cause.PREEMPTION,))),
        tiers_only=parsed.tiers_only,
        output=parsed.output,
    )
    return list_preemptions(options)
