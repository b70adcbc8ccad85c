"""`gputally what-if` says whether pods would fit now, and whom they would evict."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from gputally.client.access import add_access
from gputally.commands.output_flags import add_output_flag
from gputally.commands.question_flags import add_question_flags, unchecked
from gputally.process.settings import add_epilog
from gputally.questions.what_if import WhatIfPods

_EXAMPLES: Final = """\
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


def add_what_if_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_what_if)
    add_epilog(command, _EXAMPLES)
    command.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="a manifest (YAML, JSON); - is standard input"
    )
    add_question_flags(command.add_argument_group("instead of FILE"), WhatIfPods)
    add_output_flag(command)
    add_access(command, namespace_flags=("--aggregator-namespace",))


def _what_if(parsed: Namespace) -> int:
    from gputally.commands.from_aggregator.what_if import run_what_if  # noqa: PLC0415 - aiohttp, which --help needs not

    return run_what_if(unchecked(parsed, WhatIfPods), parsed)
