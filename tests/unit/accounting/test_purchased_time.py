"""Allocated time by the purchase option of the node, which adds up to the allocated time of each tier and tenant."""

from fractions import Fraction
from typing import Any

from gputally.accounting.totals.total import Total
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Replay
from tests.unit.accounting.test_lost_work import BOOK

MODEL = {"nvidia.com/gpu.product": "A100"}
SPOT = NodeForm(name="spot", labels={**MODEL, "gputally.io/purchase": "spot"})
PLAIN = NodeForm(name="plain", labels=MODEL)
OTHER = NodeForm(name="other", labels={"nvidia.com/gpu.product": "L4"})


def cluster() -> Replay:
    replay = Replay(book=BOOK)
    replay.see(SPOT, PLAIN, OTHER, at=0)
    for name, gpus in (("spot", 2), ("plain", 1), ("other", 4)):
        replay.see(pod(name, gpus=gpus), at=10)
    return replay


def pod(name: str, **changes: Any) -> PodForm:  # noqa: ANN401 - any field of a form
    return PodForm(name=name, tier="batch", node=name, scheduled=10, started=10, **changes)


def purchased(replay: Replay, at: float) -> dict[str, Fraction]:
    return {labels[2]: amount for labels, amount in replay.gpu_seconds(at, Total.PURCHASED).items()}


def test_time_is_counted_by_the_option_of_the_node_and_as_unknown_without_a_price() -> None:
    assert purchased(cluster(), 110) == {"spot": 200, "on-demand": 100, "unknown": 400}


def test_a_restart_changes_nothing() -> None:
    replay = cluster()
    replay.scrape(50)
    replay.restart()

    assert purchased(replay, 110) == {"spot": 200, "on-demand": 100, "unknown": 400}
