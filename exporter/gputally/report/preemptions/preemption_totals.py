"""What the preemptions of each tier destroyed and bought, added up."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Final

from msgspec import Struct

from gputally.model.units import GPU_HOUR
from gputally.report.disruption_lines import DisruptionLine
from gputally.report.rounding import decimal_of, gpus

PLACES: Final = 6
"""Decimals of GPU-hours."""


class TierTotal(Struct, frozen=True, kw_only=True):
    """All preemptions by pods of one tier. Of `valued_preemptions`, it is known what the preemptor bought.

    The lost work is
    an upper bound if that of any preemption is. `bought_gpu_hours` is None if that is none of them, or not to be shown.
    """

    preemptor_tier: str
    preemptions: int
    preempted_gpus: Decimal
    lost_gpu_hours: Decimal
    is_lost_upper_bound: bool
    stalled_gpu_hours: Decimal
    bought_gpu_hours: Decimal | None
    valued_preemptions: int
    stranded_gpu_hours: Decimal


class _TierSum(Struct, kw_only=True):
    """Quantity in µGPU, and GPU-time in µs·µGPU."""

    preemptions: int = 0
    quantity: int = 0
    lost: int = 0
    is_upper_bound: bool = False
    stalled: int = 0
    bought: int = 0
    valued: int = 0
    stranded: int = 0


def tier_totals(lines: Iterable[DisruptionLine], *, tiers_only: bool) -> list[TierTotal]:
    """By tier of the preemptor; with `tiers_only` without what preemptors had."""
    sums: defaultdict[str, _TierSum] = defaultdict(_TierSum)
    for line in lines:
        if line.preemption:
            _add(sums[line.preemption.preemptor_tier], line)
    return [_total(tier, sums[tier], tiers_only=tiers_only) for tier in sorted(sums)]


def _add(found: _TierSum, line: DisruptionLine) -> None:
    found.preemptions += 1
    found.quantity += line.disruption.quantity
    if line.lost:
        found.lost += line.lost.gpu_time
        found.is_upper_bound |= line.lost.is_upper_bound
        found.stalled += line.lost.stalled_gpu_time
    if line.value:
        found.stranded += line.value.stranded
        if line.value.bought is not None:
            found.bought += line.value.bought
            found.valued += 1


def _total(tier: str, found: _TierSum, *, tiers_only: bool) -> TierTotal:
    return TierTotal(
        preemptor_tier=tier,
        preemptions=found.preemptions,
        preempted_gpus=gpus(found.quantity),
        lost_gpu_hours=_hours(found.lost),
        is_lost_upper_bound=found.is_upper_bound,
        stalled_gpu_hours=_hours(found.stalled),
        bought_gpu_hours=None if tiers_only or not found.valued else _hours(found.bought),
        valued_preemptions=found.valued,
        stranded_gpu_hours=_hours(found.stranded),
    )


def _hours(gpu_time: int) -> Decimal:
    return decimal_of(Fraction(gpu_time, GPU_HOUR), PLACES)
