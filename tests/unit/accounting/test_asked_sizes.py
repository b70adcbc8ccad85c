"""Sizes of pods that wait, or have run in the last week."""

from gputally.accounting.waiting.fitting import WEEK_US, AskedSizes
from gputally.model.kube.kinds import Kind
from gputally.model.pod_sizes import Stranded
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import GPU_NAME, NodeForm, PodForm
from tests.core.replay import Replay

A100 = "NVIDIA-A100-SXM4-80GB"
NODE = NodeForm(name="n1", gpus=8, created=0, labels={"nvidia.com/gpu.product": A100})
LARGE = PodForm(name="large", gpus=6, node="n1", scheduled=20, started=21)
SMALL = PodForm(name="small", gpus=1, node="n1", scheduled=20, started=21)
HOUR = 3600
WEEK = WEEK_US // US_PER_SECOND


def new_replay(*pods: PodForm) -> Replay:
    replay = Replay(opened=0)
    replay.relist(Kind.NODES, NODE, at=10, since=None)
    replay.relist(Kind.PODS, *pods, at=20, since=None)
    return replay


def asked(replay: Replay) -> AskedSizes:
    return replay.fleet.waiting.fitting.asked


def sizes(replay: Replay) -> set[int]:
    return {gpus for _, _, gpus in asked(replay).read()}


def fragments(replay: Replay, at: float) -> int:
    replay.scrape(at)
    now = replay.fleet.waiting.read()
    assert now
    return sum(count for (*_, why), count in now.stranded.items() if why == Stranded.FRAGMENT)


def test_a_size_counts_for_a_week_after_its_last_pod_has_run_to_the_hour() -> None:
    replay = new_replay(LARGE)
    replay.lose(LARGE, at=2 * HOUR)

    replay.scrape(WEEK - HOUR)
    assert asked(replay).read() == {(A100, GPU_NAME, 6)}
    replay.scrape(WEEK + 4 * HOUR)
    assert sizes(replay) == set()


def test_a_pod_that_runs_for_weeks_has_run_this_week() -> None:
    replay = new_replay(LARGE)

    for day in range(1, 20):
        replay.scrape(day * 24 * HOUR)

    assert sizes(replay) == {6}


def test_a_pending_pod_counts_for_nodes_of_any_model_once_it_waits_for_a_minute_and_while_it_does() -> None:
    pending = PodForm(name="waits", gpus=3, created=20)
    replay = new_replay(LARGE, pending)
    assert sizes(replay) == {6}

    for at in range(90, 180, 5):
        replay.scrape(at)
    assert ("", GPU_NAME, 3) in asked(replay).read()

    replay.lose(pending, at=180)
    for at in range(185, 600, 5):
        replay.scrape(at)
    assert sizes(replay) == {6}


def test_free_gpus_are_fragments_until_a_pod_of_their_size_has_run() -> None:
    replay = new_replay(LARGE)
    assert fragments(replay, 30) == 2

    replay.see(SMALL, at=40)
    assert fragments(replay, 50) == 0
    replay.lose(SMALL, at=60)
    assert fragments(replay, 70) == 0, "one could run again"


def test_sizes_survive_a_restart() -> None:
    replay = new_replay(LARGE)
    replay.lose(LARGE, at=30)
    replay.scrape(40)

    replay.restart()

    assert asked(replay).read() == {(A100, GPU_NAME, 6)}


def test_pods_that_ask_for_more_than_their_node_has_hide_no_size() -> None:
    replay = new_replay(
        *(PodForm(name=f"p{n}", gpus=n, node="n1", scheduled=20, started=21) for n in range(600, 0, -1))
    )

    assert {gpus for _, _, gpus in asked(replay).read()} == set(range(1, 9))
