"""`gputally fits` says what pod sizes fit now, and why free GPUs are stranded."""

from argparse import ArgumentParser, Namespace
from typing import Final

from gputally.client.access import add_access
from gputally.commands.output_flags import add_output_flag
from gputally.commands.question_flags import add_question_flags, asked
from gputally.process.settings import add_epilog
from gputally.questions.fits import Fits

_EXAMPLES: Final = """\
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


def add_fits_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_fits)
    add_epilog(command, _EXAMPLES)
    add_question_flags(command, Fits)
    add_output_flag(command)
    add_access(command, namespace_flags=("--aggregator-namespace",))


def _fits(parsed: Namespace) -> int:
    from gputally.commands.from_aggregator.fits import run_fits  # noqa: PLC0415 - aiohttp, which --help needs not

    return run_fits(asked(parsed, Fits), parsed)
