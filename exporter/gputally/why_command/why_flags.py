"""The flags of `gputally why`, `gputally what-if` and `gputally fits`."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from gputally.setting import add_epilog
from gputally.top.flags import add_access

OUTPUTS: Final = ("text", "json")
_WHY_EXAMPLES: Final = """\
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
_WHAT_IF_EXAMPLES: Final = """\
Says where pods would fit now, whom they would evict and what work that would destroy; else why they would wait and what
would help. Creates nothing: only the requests of FILE are sent to the aggregator, no commands and no environment.

examples:
  kubectl gputally what-if --gpus 8 --model H100 --class gpu-training
  kubectl gputally what-if job.yaml               Pod, Job, CronJob, Deployment, StatefulSet, JobSet, PyTorchJob ...
  helm template . | kubectl gputally what-if -    all workloads of a chart, one after the other
  kubectl gputally what-if --gpus 1 --cpu 8 --memory 64Gi --count 16 --namespace ml
  gputally what-if job.yaml --url http://gpu.example:9836 --output json | jq '.forecasts[].victims'

Quotas count if the aggregator watches them; queues such as Kueue do not. Of several nodes that fit, the scheduler may
take any.

exit status: 0 answered, also if the pods would wait; 2 flags or FILE; 8 aggregator not reached
"""


_FITS_EXAMPLES: Final = """\
Says for each GPU model and pool how many pods of 1, 2, 4 and 8 GPUs would be bound at once, without preemption, and why
free GPUs are stranded. Each size is counted by itself. Pods tolerate the taints that reserve nodes for GPUs. For a pod
of yours, with its selectors, its class and whom it would evict, use gputally what-if.

examples:
  kubectl gputally fits
  kubectl gputally fits --model H100
  kubectl gputally fits --cpu 8 --memory 64Gi     pods that need this much for each GPU
  gputally fits --url http://gpu.example:9836 --output json | jq '.pools[] | {gpu_model, pool, stranded}'

exit status: 0 answered; 2 flags; 8 aggregator not reached
"""


def add_why_flags(command: ArgumentParser) -> None:
    """Add the flags of `why`, with examples."""
    command.set_defaults(run=_why)
    add_epilog(command, _WHY_EXAMPLES)
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
    add("--output", choices=OUTPUTS, default="text", help="json prints the response of the API [default: text]")
    add_access(command, namespace_flags=("--aggregator-namespace",))


def add_what_if_flags(command: ArgumentParser) -> None:
    """Add the flags of `what-if`, with examples."""
    command.set_defaults(run=_what_if)
    add_epilog(command, _WHAT_IF_EXAMPLES)
    add = command.add_argument
    add("file", nargs="?", type=Path, metavar="FILE", help="a manifest (YAML, JSON); - is standard input")
    pod = command.add_argument_group("instead of FILE").add_argument
    pod("--gpus", type=int, metavar="N", help="GPUs of a pod")
    pod("--model", metavar="MODEL", default="", help="GPU model, or a part of its name, such as H100")
    pod("--class", dest="class_name", metavar="CLASS", default="", help="PriorityClass; default is the cluster's")
    pod("--cpu", metavar="CPUS", default="", help="CPUs of a pod, such as 16 or 500m")
    pod("--memory", metavar="BYTES", default="", help="memory of a pod, such as 64Gi")
    pod("--count", type=int, metavar="N", default=None, help="number of equal pods [default: 1]")
    pod("-n", "--namespace", metavar="NAMESPACE", default="", help="namespace of the pods [default: default]")
    add("--output", choices=OUTPUTS, default="text", help="json prints the response of the API [default: text]")
    add_access(command, namespace_flags=("--aggregator-namespace",))


def add_fits_flags(command: ArgumentParser) -> None:
    """Add the flags of `fits`, with examples."""
    command.set_defaults(run=_fits)
    add_epilog(command, _FITS_EXAMPLES)
    add = command.add_argument
    add("--model", metavar="MODEL", default="", help="only GPU models of this name, or a part of it, such as H100")
    add("--cpu", metavar="CPUS", default="", help="CPUs of a pod for each GPU, such as 8 [default: 1]")
    add("--memory", metavar="BYTES", default="", help="memory of a pod for each GPU, such as 64Gi [default: 1Gi]")
    add("--output", choices=OUTPUTS, default="text", help="json prints the response of the API [default: text]")
    add_access(command, namespace_flags=("--aggregator-namespace",))


def _why(parsed: Namespace) -> int:
    from gputally.why_command.run_why import run_why  # noqa: PLC0415 - the other two commands need none of it

    return run_why(parsed)


def _what_if(parsed: Namespace) -> int:
    from gputally.why_command.run_what_if import run_what_if  # noqa: PLC0415 - as above

    return run_what_if(parsed)


def _fits(parsed: Namespace) -> int:
    from gputally.why_command.run_fits import run_fits  # noqa: PLC0415 - as above

    return run_fits(parsed)
