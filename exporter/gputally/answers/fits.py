"""What pod sizes fit now."""

from collections.abc import Callable
from typing import Final

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.answers.planned_pods import no_such_model
from gputally.answers.viewer import Viewer
from gputally.model.api.fits import FitsDocument, PoolFits
from gputally.model.needs import Place
from gputally.model.pod_sizes import SIZES, Capacity
from gputally.model.quantities import CPU, MEMORY
from gputally.model.units import to_datetime
from gputally.placement.fits_now import Labels, fits_now
from gputally.placement.resource_requests import amount_of
from gputally.questions.fits import Fits

_MILLI: Final = 1000


def fits_document(now: PendingNow, asked: Fits, viewer: Viewer) -> FitsDocument:
    """The answer. Raises: InvalidQuestion for a GPU model that no node has."""
    found, per_gpu = {}, {CPU: amount_of(CPU, asked.cpu), MEMORY: amount_of(MEMORY, asked.memory)}
    if now.room.is_complete:
        amounts = tuple(per_gpu.items())
        found = fits_now(now.room, _labels_of(viewer), now.rules, sizes=now.sizes, per_gpu=amounts)
    chosen = {labels: each for labels, each in found.items() if asked.model.lower() in labels[0].lower()}
    if found and not chosen:
        raise no_such_model(asked.model, {model for model, *_ in found})
    return FitsDocument(
        at=to_datetime(now.at_us),
        cpu_cores=per_gpu[CPU] / _MILLI,
        memory_bytes=per_gpu[MEMORY],
        is_complete=now.room.is_complete,
        pools=[_pool(*each) for each in sorted(chosen.items(), key=lambda pair: (-pair[1].free, pair[0]))],
    )


def _labels_of(viewer: Viewer) -> Callable[[Place], Labels]:
    """The GPU model of a node, and its pool for a reader who may know it."""

    def labels_of(place: Place) -> Labels:
        asset = place.asset
        model = (asset.gpu_model if asset else "") or "unknown"
        return (model, asset.pool if asset else "") if viewer.sees_nodes else (model,)

    return labels_of


def _pool(labels: Labels, found: Capacity) -> PoolFits:
    return PoolFits(
        gpu_model=labels[0],
        pool=labels[1] if len(labels) > 1 else None,
        free=found.free,
        fits=dict(zip(SIZES, found.fits, strict=True)),
        stranded={why.value: count for why, count in found.stranded},
    )
