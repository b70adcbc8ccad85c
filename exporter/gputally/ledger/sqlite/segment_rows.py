"""Converts segments to columns, and back."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from gputally.model.allocation import Segment, State
from gputally.model.price import Price

Row = tuple[Any, ...]
Span = tuple[int, int | None, int]
"""Start and end (µs; None while it lasts) and µGPU."""
_STATES: Final = {state.value: state for state in State}
TERMS: Final = (
    *("resource", "state", "tier", "tenant", "queue", "gpu_model", "pool"),
    *("label_tier", "label_tenant", "label_gpu_model"),
)
"""The last three are the exported, limited label values; the others are the full names."""


def segment_of(span: Span, terms: Sequence[str], price: Price | None) -> Segment:
    """The segment with these TERMS."""
    resource, state, tier, tenant, queue, gpu_model, pool, *labels = terms
    start_us, end_us, quantity = span
    return Segment(
        resource=resource,
        start_us=start_us,
        end_us=end_us,
        state=_STATES[state],
        quantity=quantity,
        tier=tier,
        tenant=tenant,
        queue=queue,
        gpu_model=gpu_model,
        pool=pool,
        price=price,
        labels=_labels(*labels, state),
    )


@lru_cache(maxsize=65_536)
def _labels(tier: str, tenant: str, gpu_model: str, state: str) -> tuple[str, str, str, str]:
    """A shared tuple for the thousands of pods with the same labels."""
    return tier, tenant, gpu_model, state
