"""Says what pod sizes fit now: a table of models and pools, then what the reasons of stranded GPUs mean."""

from collections.abc import Mapping, Sequence
from typing import Final

from gputally.formatting.amounts import byte_words, count_words, gpu_words
from gputally.formatting.wrapping import Fact, Grid, Paragraph, Parts
from gputally.model.api.fits import FitsDocument, PoolFits
from gputally.model.pod_sizes import SIZES, Stranded
from gputally.output.answer import Answer, live_answer

_NOT_YET: Final = "It is not yet known what fits: the pods on the nodes with GPUs are still being listed. Ask again."
_NONE: Final = "No node has GPUs."
_MEANINGS: Final[Mapping[str, str]] = {
    Stranded.CPU: "too little CPU is left on the node, even for a pod with one GPU",
    Stranded.MEMORY: "too little memory is left on the node, even for a pod with one GPU",
    Stranded.PODS: "the node has as many pods as it may have",
    Stranded.FRAGMENT: "too few GPUs are free on the node for any pod that waits, or has run there in the last week",
    Stranded.CORDON: "the node is cordoned",
    Stranded.NOT_READY: "the node is not ready, lacks memory or disk, or is being removed",
}


def fits_answer(document: FitsDocument, body: bytes) -> Answer:
    """The answer; CSV has a row for each model and pool."""
    sizes = [f"fits_{size}" for size in SIZES]
    records = (
        (each.gpu_model, each.pool, each.free, *(each.fits.get(size, 0) for size in SIZES), sum(each.stranded.values()))
        for each in document.pools
    )
    columns = ("gpu_model", "pool", "free", *sizes, "stranded")
    return live_answer("What fits", fits_parts(document), body, at=document.at, columns=columns, records=records)


def fits_parts(document: FitsDocument) -> Parts:
    """How many GPUs are free, what fits by model and pool, and why GPUs are stranded."""
    if not document.pools:
        yield Paragraph(_NONE if document.is_complete else _NOT_YET)
        return
    yield Paragraph(_headline(document))
    yield ""
    yield from _table(document.pools)
    reasons = {why for each in document.pools for why in each.stranded}
    if reasons:
        yield ""
    for why in sorted(reasons):
        yield Fact(why, _MEANINGS.get(why, "another reason"))


def _headline(document: FitsDocument) -> str:
    free = sum(each.free for each in document.pools)
    stranded = sum(sum(each.stranded.values()) for each in document.pools)
    lost = f", of which {count_words(stranded)} {'is' if stranded == 1 else 'are'} stranded" if stranded else ""
    cores = f"{document.cpu_cores:g} CPU{'' if document.cpu_cores == 1 else 's'}"
    needs = f"{cores} and {byte_words(document.memory_bytes)} memory"
    verb = "is" if free == 1 else "are"
    return f"{gpu_words(free)} {verb} free{lost}. Pods that fit now, each size by itself, with {needs} for each GPU:"


def _table(pools: Sequence[PoolFits]) -> Parts:
    has_stranded, has_pools = any(each.stranded for each in pools), any(each.pool for each in pools)
    heads = ["FREE", *(gpu_words(size).upper() for size in SIZES)]
    heads += ["STRANDED"] * has_stranded + ["MODEL"] + ["POOL"] * has_pools
    rows = [
        [
            *map(count_words, (each.free, *(each.fits.get(size, 0) for size in SIZES))),
            *[", ".join(f"{count_words(count)} {why}" for why, count in each.stranded.items())] * has_stranded,
            each.gpu_model,
            *[each.pool or ""] * has_pools,
        ]
        for each in pools
    ]
    yield Grid([heads, *rows], frozenset(range(len(SIZES) + 1)))
