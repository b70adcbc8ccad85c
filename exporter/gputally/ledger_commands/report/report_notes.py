"""Notes under a report, on standard error."""

from collections.abc import Sequence
from typing import Final, TextIO

from gputally.model.printable import printable
from gputally.model.units import GPU_HOUR, US_PER_SECOND
from gputally.reports.unbilled import SampledLine

_MOST: Final = 10
"""Lines that are printed, those with the largest possible error first."""


def write_sampled(file: TextIO, lines: Sequence[SampledLine], *, source: str = "gputally") -> None:
    """Say what rests on ends that were not observed, by line of the report; nothing if nothing does."""
    if not lines:
        return
    total = SampledLine(
        labels=(),
        gpu_time=sum(line.gpu_time for line in lines),
        most=sum(line.most for line in lines),
        longest_us=max(line.longest_us for line in lines),
    )
    shown = lines[:_MOST] if len(lines) > 1 else []
    file.write(f"{source}: {_amounts(total)}\n")
    file.writelines(f"  {printable(', '.join(line.labels))}: {_amounts(line, short=True)}\n" for line in shown)
    if (more := len(lines) - _MOST) > 0:
        file.write(f"  and {more:,} more\n")


def _amounts(line: SampledLine, *, short: bool = False) -> str:
    about = "" if short else " are of pods whose end was not observed"
    hours, most, span_s = line.gpu_time / GPU_HOUR, line.most / GPU_HOUR, line.longest_us / US_PER_SECOND
    return (
        f"{hours:,.2f} GPU-hours{about}, at most {most:,.4f} GPU-hours are missing; ends are known to {span_s:,.3g} s"
    )
