"""What fits now: the parameters of a request, and its answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Self

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.answers.parameters import FITS_PARAMETERS, InvalidRequest, expect_known, only
from gputally.answers.planned_pods import quantity_parameter
from gputally.answers.viewer import Viewer
from gputally.model.api.fits import FitsDocument, PoolFits
from gputally.model.needs import Amounts, Place
from gputally.model.pod_sizes import SIZES, Capacity
from gputally.model.quantities import CPU, MEMORY
from gputally.model.units import to_datetime
from gputally.placement.fits_now import LEAST_PER_GPU, Labels, fits_now
from gputally.placement.resource_requests import amount_of

_RESOURCES: Final = {"cpu": CPU, "memory": MEMORY}
_MILLI: Final = 1000


class FitsRequest(NamedTuple):
    """A part of the name of a GPU model, "" for all, and what pods need for each GPU."""

    model: str
    per_gpu: Amounts

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> Self:
        """The request with these parameters. Raises: InvalidRequest."""
        expect_known(query, FITS_PARAMETERS)
        single = {name: only(name, values) for name, values in query.items()}
        per_gpu = dict(LEAST_PER_GPU)
        for name, resource in _RESOURCES.items():
            if name in single:
                per_gpu[resource] = _positive(name, single[name])
        return cls(single.get("model", ""), tuple(per_gpu.items()))


def _positive(name: str, text: str) -> int:
    if amount := amount_of(_RESOURCES[name], quantity_parameter(name, text)):
        return amount
    raise InvalidRequest(f"{name} '{text}' is not valid; use more than 0")


def fits_document(now: PendingNow, asked: FitsRequest, viewer: Viewer) -> FitsDocument:
    """The answer. Raises: InvalidRequest for a GPU model that no node has."""
    found = {}
    if now.room.is_complete:
        found = fits_now(now.room, _labels_of(viewer), now.rules, sizes=now.sizes, per_gpu=asked.per_gpu)
    chosen = {labels: each for labels, each in found.items() if asked.model.lower() in labels[0].lower()}
    if found and not chosen:
        known = ", ".join(sorted({model for model, *_ in found}))
        raise InvalidRequest(f"no node has a GPU model like '{asked.model[:60]}'; there are {known}")
    per_gpu = dict(asked.per_gpu)
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
