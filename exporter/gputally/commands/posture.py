"""`gputally posture` says who may preempt whom in a cluster or in manifests, and checks it."""

import asyncio
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from datetime import UTC
from pathlib import Path
from typing import Final

from msgspec import Struct

from gputally.commands.posture_sources import read_cluster, read_manifests
from gputally.config.rules_file import default_rules, read_rules
from gputally.errors import ConfigError, Problem
from gputally.kube.connection import Choice, connect
from gputally.model.rules import Rules
from gputally.output.posture import write_posture
from gputally.posture.document import posture_of
from gputally.posture.objects import PostureInput
from gputally.posture.preemptions import PreemptionHistory
from gputally.process.settings import Setting, add_epilog, add_flags, file


class PostureOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command; without `files`, the cluster is read, without `ledger`, nothing was observed."""

    files: tuple[Path, ...]
    kubeconfig: str
    context: str
    configuration: Path | None
    ledger: str
    window: str
    output: str
    exit_zero: bool


def posture(options: PostureOptions) -> int:
    """Write the posture. Returns the exit status: 1 for errors and warnings. Raises: GputallyError."""
    if options.files and (options.kubeconfig or options.context):
        flag = "--kubeconfig" if options.kubeconfig else "--context"
        raise ConfigError([Problem("", flag, "cannot be combined with files; omit one of them")])
    rules = read_rules(options.configuration) if options.configuration else default_rules()
    read = read_manifests(options.files) if options.files else asyncio.run(_read_cluster(options, rules))
    found = posture_of(read, rules, _history(options))
    write_posture(sys.stdout, found, output=options.output)
    sys.stdout.flush()
    return int(found.fails and not options.exit_zero)


def _history(options: PostureOptions) -> PreemptionHistory | None:
    """What the ledger has, if one is named. Raises: LedgerError, and ConfigError for a wrong window."""
    if not options.ledger:
        return None
    return _read_history(options.ledger, options.window)


def _read_history(ledger: str, window: str) -> PreemptionHistory:
    """The accounted part of the window. Raises: LedgerError, and ConfigError for a wrong or empty window."""
    from gputally.commands.scope import accounted, window_of  # noqa: PLC0415 - SQLite, only where a ledger is named
    from gputally.ledger.open import reading_once  # noqa: PLC0415 - as above

    with reading_once(ledger) as reader:
        state = reader.state()
        period = accounted(window_of(window, state, UTC), state)
        if period.start_us >= period.end_us:
            problem = f"nothing is accounted in '{window}'; choose a period after the start of the ledger"
            raise ConfigError([Problem("", "--window", problem)])
        preemptions = reader.preemptions(period)
        by_priority = (each for each in preemptions if each.queue_rule is None and not each.preemptor_kind)
        counts = Counter((each.victim_tier, each.preemptor_tier) for each in by_priority)
        return PreemptionHistory(window=period, counts=counts, classes=reader.priority_classes(period))


async def _read_cluster(options: PostureOptions, rules: Rules) -> PostureInput:
    async with connect(Choice(kubeconfig=options.kubeconfig, context=options.context)) as api:
        return await read_cluster(api, rules)


OUTPUTS: Final = ("table", "markdown", "html", "json")
_EXAMPLES: Final = """\
Only reads. It needs no ledger and no aggregator: PriorityClasses, ResourceQuotas, PodDisruptionBudgets, nodes,
namespaces, GPU pods and their workloads come from the API server, or from FILEs. What you may not list is named, with
the checks that are not possible without it. docs/posture.md explains every finding. With a ledger, the document also
has the preemptions that were observed, beside those that are permitted, and the changes of PriorityClasses.

An object accepts a finding with the annotation gputally.io/posture-accept: CHECK,...

exit status: 0 no error and no warning was found; 1 there are some; 2 flags or files are wrong; 3 API server;
4 ledger

examples:
  gputally posture                                      the cluster of the current context
  gputally posture --context prod --output markdown > posture.md
  gputally posture manifests/ --exit-zero               files: all .yaml, .yml and .json of a folder
  helm template . | gputally posture -                  before anything is installed, in CI
  kubectl get priorityclasses,quota,jobs -A -o json | gputally posture --config.file config.yaml -
  gputally posture --ledger gputally.db --window 90d    with preemptions of that time, and changes of classes
  kubectl gputally posture --output html > posture.html
  gputally posture --output json | jq -r '.findings[] | .severity + " " + .check + " " + .object.name'
"""
_LEDGER: Final = Setting(
    "ledger", "", "FILE", "SQLite ledger: shows observed preemptions beside the permitted ones, and changes of classes"
)
_CONFIGURATION: Final = Setting(
    "config.file", "", "FILE", "tiers and serving patterns (YAML); without it, each PriorityClass is a tier"
)


def add_posture_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_posture)
    add_epilog(command, _EXAMPLES)
    add = command.add_argument
    add(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="manifests (YAML, JSON) or folders of them; - is standard input; without any, the cluster is read",
    )
    add("--kubeconfig", metavar="FILE", default="", help="kubeconfig; default is kubectl's, or the service account")
    add("--context", metavar="NAME", default="", help="context of the kubeconfig; default is the current one")
    add_flags(command, (_CONFIGURATION, _LEDGER))
    add("--window", metavar="PERIOD", default="30d", help="the period to read from the ledger [default: %(default)s]")
    add("--output", choices=OUTPUTS, default="table", help="[default: %(default)s]")
    add("--exit-zero", action="store_true", help="exit with 0 whatever is found")


def _posture(parsed: Namespace) -> int:
    options = PostureOptions(
        files=tuple(parsed.files),
        kubeconfig=parsed.kubeconfig,
        context=parsed.context,
        configuration=file(getattr(parsed, _CONFIGURATION.name)),
        ledger=getattr(parsed, _LEDGER.name),
        window=parsed.window,
        output=parsed.output,
        exit_zero=parsed.exit_zero,
    )
    return posture(options)
