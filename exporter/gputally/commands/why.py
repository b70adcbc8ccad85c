"""`gputally why` says why a pod waits for GPUs, and what would help."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.client.access import add_access
from gputally.commands.output_flags import add_output_flag
from gputally.process.settings import add_epilog

_EXAMPLES: Final = """\
Asks the aggregator, and changes nothing. The first line is the answer; then follow what the pod needs, what blocks it,
who holds that and whether it may preempt them, what it waited for before, how long others like it waited, and what
would help, with who can do that; changes of the job itself are listed separately. Each suggestion was checked: with
it, the pod would fit. docs/pending.md explains every verdict.

examples:
  kubectl gputally why ml/train-0                 one pod
  kubectl gputally why -n ml train-0              the same
  kubectl gputally why ml/job/train               all pods of a job, those that wait for the same reason together
  kubectl gputally why ml                         everything that waits in a namespace, the reasons first
  kubectl gputally why --tenant research
  kubectl gputally why --all                      everything that waits, the reasons first
  gputally why ml/train-0 --url http://gpu.example:9836 --output json | jq -r '.answers[].helps[].text'

A pod that runs, or ran, is answered with when and why it waited, and who preempted it.

exit status: 0 answered; 2 flags; 8 aggregator not reached; 12 no such pod, or it requests no GPU
"""


def add_why_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_why)
    add_epilog(command, _EXAMPLES)
    add = command.add_argument
    add(
        "what",
        nargs="?",
        default="",
        metavar="WHAT",
        help="NAMESPACE/POD, NAMESPACE/job/NAME or NAMESPACE; with --namespace, POD or job/NAME",
    )
    add("-n", "--namespace", metavar="NAMESPACE", default="", help="namespace of the pod")
    add("--job", action="store_true", help="WHAT is a job: NAMESPACE/NAME")
    add("--tenant", metavar="TENANT", default="", help="everything of this tenant that waits")
    add("--all", action="store_true", help="everything that waits")
    add_output_flag(command)
    add_access(command, namespace_flags=("--aggregator-namespace",))


def _why(parsed: Namespace) -> int:
    from gputally.commands.from_aggregator.why import run_why  # noqa: PLC0415 - aiohttp, which --help needs not

    return run_why(parsed)
