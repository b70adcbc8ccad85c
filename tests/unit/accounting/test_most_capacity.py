"""The most GPUs that a cluster ever had."""

from gputally.accounting.nodes.most_capacity import ALL
from gputally.model.kube import Kind
from gputally.model.units import GPU
from tests.core.manifests import NodeForm
from tests.core.replay import Replay

H100 = {"nvidia.com/gpu.product": "H100"}
L4 = {"nvidia.com/gpu.product": "L4"}


def most(of: Replay, model: str = ALL) -> tuple[float, float]:
    """GPUs of all nodes, and of one."""
    found = of.fleet.nodes.most.of(model)
    return found.quantity / GPU, found.on_one_node / GPU


def test_nodes_add_up_by_model_and_the_most_stays_when_they_go() -> None:
    replay = Replay()
    first, second = NodeForm(name="n1", gpus=8, labels=H100), NodeForm(name="n2", gpus=4, labels=L4)
    replay.see(first, second, at=1)
    replay.lose(first, at=2)
    replay.see(NodeForm(name="n3", gpus=2, labels=L4, created=3), at=3)

    assert (most(replay), most(replay, "H100"), most(replay, "L4")) == ((12, 8), (8, 8), (6, 4))
    assert most(replay, "T4") == (0, 0)


def test_a_node_that_registers_again_counts_once() -> None:
    replay = Replay()
    for at in range(1, 6):
        replay.see(NodeForm(name="n1", uid=f"uid-{at}", gpus=8, labels=H100, created=at, machine="m"), at=at)

    assert (most(replay), most(replay, "H100")) == ((8, 8), (8, 8))


def test_a_model_that_is_learned_late_and_gpus_that_fail_count_once() -> None:
    replay = Replay()
    replay.see(NodeForm(gpus=8), at=1)
    replay.see(NodeForm(gpus=8, labels=H100, version=2), at=2)
    replay.see(NodeForm(gpus=6, labels=H100, version=3), at=3)
    replay.see(NodeForm(gpus=8, labels=H100, version=4), at=4)

    assert (most(replay), most(replay, "H100")) == ((8, 8), (8, 8))


def test_a_new_process_continues_with_the_nodes_that_exist() -> None:
    replay = Replay()
    replay.see(NodeForm(name="n1", gpus=8, labels=H100), NodeForm(name="n2", gpus=8, labels=H100), at=1)
    replay.flush()
    replay.restart()
    replay.relist(Kind.NODES, NodeForm(name="n1", gpus=8, labels=H100), at=5, since=1)
    replay.see(NodeForm(name="n3", gpus=16, labels=H100, created=6), at=6)

    assert most(replay) == (24, 16)
    assert {each.gpu_model for each in replay.fleet.nodes.most.known.values()} == {ALL, "H100"}
