import pytest

from gputally.placement.scheduler_text import Topic, message_parts, unmodelled


@pytest.mark.parametrize(
    "said",
    [
        "3 Insufficient nvidia.com/gpu",
        "1 Too many pods",
        "2 node(s) had untolerated taint {team: a}",
        "2 node(s) had untolerated taint(s)",
        "1 node(s) had taint {team: a}, that the pod didn't tolerate",
        "1 node(s) were unschedulable",
        "4 node(s) didn't match Pod's node affinity/selector",
        "no nodes available to schedule pods",
    ],
)
def test_what_is_modelled_is_recognised(said: str) -> None:
    assert unmodelled(f"0/9 nodes are available: {said}. preemption: 0/9 nodes are available: 9 anything else.") == ()


@pytest.mark.parametrize(
    ("said", "topic"),
    [
        ("1 node(s) had volume node affinity conflict", Topic.VOLUMES),
        ("pod has unbound immediate PersistentVolumeClaims", Topic.VOLUMES),
        ('persistentvolumeclaim "data" not found', Topic.VOLUMES),
        ("2 node(s) didn't find available persistent volumes to bind", Topic.VOLUMES),
        ("1 node(s) exceed max volume count", Topic.VOLUMES),
        ("2 node(s) didn't match pod anti-affinity rules", Topic.POD_AFFINITY),
        ("2 node(s) didn't satisfy existing pods anti-affinity rules", Topic.POD_AFFINITY),
        ("2 node(s) didn't match pod topology spread constraints", Topic.TOPOLOGY_SPREAD),
        ("1 node(s) didn't have free ports for the requested pod ports", Topic.HOST_PORTS),
        ("1 cannot allocate all claims", Topic.CLAIM),
        ("3 something that a plugin of ours says", Topic.OTHER),
    ],
)
def test_what_is_not_modelled_has_a_topic(said: str, topic: Topic) -> None:
    (found,) = unmodelled(f"0/3 nodes are available: 1 Insufficient cpu, {said}. preemption: 0/3 nodes are available.")

    assert found.topic is topic
    assert said.endswith(found.text)


def test_each_part_has_its_number_of_nodes() -> None:
    found = message_parts("0/5 nodes are available: 2 Insufficient cpu, 3 node(s) were unschedulable.")

    assert [each.nodes for each in found] == [2, 3]


def test_a_text_without_an_end_is_cut() -> None:
    (found,) = message_parts("x" * 100_000)

    assert len(found.text) == 200


def test_no_text_says_nothing() -> None:
    assert message_parts("") == ()
