"""The most GPUs that a cluster ever had."""

from gputally.accounting.nodes.most_capacity import ALL
from gputally.model.kube.kinds import Kind
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


def test_shares_of_gpus_are_weighed_as_those_of_pods_without_a_node_are() -> None:
    replay = Replay()
    labels = H100 | {"nvidia.com/gpu.count": "6", "nvidia.com/gpu.replicas": "50"}
    replay.see(NodeForm(gpus=300, labels=labels), at=1)
    replay.see(NodeForm(name="n2", gpus=8, labels=H100), at=2)

    assert most(replay, "H100") == (308, 300)


def test_a_node_counts_for_every_model_by_which_a_pod_may_select_it() -> None:
    replay = Replay()
    both = H100 | {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}
    nodes = [NodeForm(name=f"n{number}", gpus=8, labels=both) for number in range(3)]
    replay.see(*nodes, at=1)
    for each in nodes:
        replay.lose(each, at=2)

    assert most(replay, "nvidia-h100-80gb") == most(replay, "H100") == most(replay) == (24, 8)


def test_of_a_model_beyond_those_that_are_known_apart_all_gpus_count() -> None:
    replay = Replay()
    replay.see(*(NodeForm(name=f"n{each}", labels={"gpu-type": f"model-{each}"}) for each in range(300)), at=1)

    assert most(replay, "model-0") == (8, 8)
    assert most(replay, "model-299") == most(replay) == (2400, 8)
