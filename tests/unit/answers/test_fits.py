"""What pod sizes fit now: the parameters, and the answer."""

import re

import pytest
from msgspec.structs import replace

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.answers.fits import fits_document
from gputally.answers.viewer import ALL, Viewer
from gputally.model.api.fits import PoolFits
from gputally.model.price import Asset
from gputally.questions.fits import Fits
from gputally.questions.parameter import InvalidQuestion
from tests.core.manifests import GPU_NAME
from tests.texts import fits_lines
from tests.unit.answers.pending_world import H100, holds, node, world

USUAL = Fits()


def found() -> PendingNow:
    """Of 8 H100s 3 are free, where pods have 2 or 8 GPUs.

    Of 4 A100s all are free, but one node of them is tainted as not ready.
    """
    out = ({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},)
    now = world(
        [node("h", 8), node("a", 2, model="A100"), node("b", 2, model="A100", taints=out)],
        [holds("x", 5, on="h")],
    )
    assets = {"h": Asset(gpu_model=H100, pool="train"), "a": Asset(gpu_model="A100", pool="serve")}
    for name, asset in (assets | {"b": replace(assets["a"], pool="old")}).items():
        place = now.room.nodes[name].place
        assert place
        now.room.put_node(replace(place, asset=asset))
    return now._replace(sizes=[(H100, GPU_NAME, 2), (H100, GPU_NAME, 8)])


def test_each_model_and_pool_has_what_fits_and_what_is_stranded() -> None:
    document = fits_document(found(), USUAL, ALL)

    assert (document.is_complete, document.cpu_cores, document.memory_bytes) == (True, 1.0, 2**30)
    assert document.pools == [
        PoolFits(gpu_model=H100, pool="train", free=3, fits={1: 3, 2: 1, 4: 0, 8: 0}, stranded={"fragment": 1}),
        PoolFits(gpu_model="A100", pool="old", free=2, fits={1: 0, 2: 0, 4: 0, 8: 0}, stranded={"not_ready": 2}),
        PoolFits(gpu_model="A100", pool="serve", free=2, fits={1: 2, 2: 1, 4: 0, 8: 0}, stranded={}),
    ]


def test_pods_may_need_more_for_each_gpu_and_one_model_may_be_asked_for() -> None:
    asked = Fits(memory="1Ti", cpu="500m", model="h100")

    document = fits_document(found(), asked, ALL)

    assert (document.cpu_cores, document.memory_bytes) == (0.5, 2**40)
    assert [(each.gpu_model, each.fits[1], each.stranded) for each in document.pools] == [
        (H100, 1, {"memory": 2, "fragment": 1})
    ]


def test_a_restricted_reader_sees_models_and_no_pools() -> None:
    document = fits_document(found(), USUAL, Viewer(frozenset({"ml"})))

    assert [(each.gpu_model, each.pool, each.free) for each in document.pools] == [("A100", None, 4), (H100, None, 3)]


def test_while_pods_are_still_listed_nothing_is_said_to_fit() -> None:
    now = found()
    now.room.is_complete = False

    document = fits_document(now, USUAL, ALL)

    assert (document.is_complete, document.pools) == (False, [])
    assert " ".join(fits_lines(document, width=80)).startswith("It is not yet known what fits: ")


def test_a_model_that_no_node_has_is_named_with_those_that_there_are() -> None:
    with pytest.raises(
        InvalidQuestion, match=re.escape(f"no node has a GPU model like 'B200'; there are A100, {H100}")
    ):
        fits_document(found(), Fits(model="B200"), ALL)


def test_the_text_has_a_row_for_each_pool_and_says_why_gpus_are_stranded() -> None:
    assert list(fits_lines(fits_document(found(), USUAL, ALL), width=100)) == [
        "7 GPUs are free, of which 3 are stranded. Pods that fit now, each size by itself, with 1 CPU and 1",
        "GiB memory for each GPU:",
        "",
        "FREE  1 GPU  2 GPUS  4 GPUS  8 GPUS  STRANDED     MODEL                  POOL",
        "   3      3       1       0       0  1 fragment   NVIDIA-H100-80GB-HBM3  train",
        "   2      0       0       0       0  2 not_ready  A100                   old",
        "   2      2       1       0       0               A100                   serve",
        "",
        "fragment    too few GPUs are free on the node for any pod that waits, or has run there in the last",
        "            week",
        "not_ready   the node is not ready, lacks memory or disk, or is being removed",
    ]


def test_without_nodes_that_is_all_there_is_to_say() -> None:
    document = fits_document(world([], []), USUAL, ALL)

    assert list(fits_lines(document, width=100)) == ["No node has GPUs."]
