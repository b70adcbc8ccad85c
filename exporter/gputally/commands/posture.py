"""`gputally posture` says who may preempt whom in a cluster or in manifests, and checks it."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from gputally.commands.output_flags import add_output_flag
from gputally.process.settings import Setting, add_epilog, add_flags, file

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
    add_output_flag(command)
    add("--exit-zero", action="store_true", help="exit with 0 whatever is found")


def _posture(parsed: Namespace) -> int:
    from gputally.commands.from_cluster.posture import PostureOptions, posture  # noqa: PLC0415 - for --help the flags suffice

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
