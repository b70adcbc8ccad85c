"""Verdicts in words."""

import pytest

from gputally.answers.verdict_words import REASONS, obstacle_text, sentence
from gputally.model.needs import GangState, QuotaState, Situation, TaskState
from gputally.model.verdicts import Obstacle, ObstacleKind, Reason, Verdict

GPU = "nvidia.com/gpu"
QUOTA = Situation(quota=QuotaState(name="gpus", what=f"requests.{GPU}", hard=6, used=5, needed=2))


def obstacle(kind: ObstacleKind, what: str = "", node: str = "", needed: int = 8, free: int = 2) -> Obstacle:
    return Obstacle(kind=kind, what=what, node=node, needed=needed, free=free)


def verdict(reason: Reason, *obstacles: Obstacle, node: str = "", victims: tuple[str, ...] = ()) -> Verdict:
    return Verdict(reason=reason, obstacles=obstacles, node=node, victims=victims)


@pytest.mark.parametrize(
    ("found", "situation", "text"),
    [
        (
            verdict(Reason.NO_SCHEDULER, obstacle(ObstacleKind.SCHEDULER, "volcano")),
            Situation(),
            "no scheduler named volcano is active",
        ),
        (
            verdict(Reason.GATED, obstacle(ObstacleKind.GATE, "a"), obstacle(ObstacleKind.GATE, "b")),
            Situation(),
            "it is gated by a and b",
        ),
        (verdict(Reason.QUEUED), Situation(queue="team-a"), "its queue has not admitted it: team-a"),
        (verdict(Reason.QUOTA), QUOTA, "its quota gpus is used up: 2 GPUs needed, 5 of 6 used"),
        (verdict(Reason.QUOTA_NEVER), QUOTA, "its quota gpus can never admit it: 2 GPUs needed, 6 allowed"),
        (
            verdict(Reason.GANG),
            Situation(gang=GangState(name="train", least=8, members=6, bound=6)),
            "its gang train is incomplete: 6 of 8 pods exist",
        ),
        (
            verdict(Reason.GANG),
            Situation(gang=GangState(name="train", least=8, members=8, bound=6)),
            "its gang train needs 8 pods at once, of which 6 hold resources",
        ),
        (
            verdict(Reason.GANG),
            Situation(gang=GangState(name="train", least=4, members=5, tasks=(TaskState("worker", 3, 2, 0),))),
            "its gang train is incomplete: too few pods of a task exist (task worker: 2 of 3)",
        ),
        (
            verdict(Reason.GANG),
            Situation(
                gang=GangState(
                    name="train",
                    least=4,
                    members=5,
                    bound=4,
                    tasks=(TaskState("ps", 1, 2, 2), TaskState("worker", 3, 3, 2)),
                )
            ),
            "its gang train needs 4 pods at once, of which 4 hold resources (task worker: 2 of 3)",
        ),
        (
            verdict(Reason.OTHER_RESOURCE, obstacle(ObstacleKind.RESOURCE, "memory", "g1"), node="g1"),
            Situation(),
            "enough GPUs are there on g1, but not enough memory",
        ),
        (
            verdict(Reason.VICTIMS_STOPPING, node="g1", victims=("a", "b")),
            Situation(),
            "room is being made on g1, where 2 pods are still stopping",
        ),
        (verdict(Reason.CLAIM), Situation(open_claims=("gpu",)), "ResourceClaim gpu is not allocated"),
    ],
)
def test_a_verdict_is_a_sentence_with_its_names_and_numbers(found: Verdict, situation: Situation, text: str) -> None:
    assert sentence(found, None, situation) == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (obstacle(ObstacleKind.RESOURCE, GPU, "g1"), "g1: 8 GPUs needed, 2 available"),
        (
            obstacle(ObstacleKind.RESOURCE, "memory", "g1", 64 << 30, 1 << 30),
            "g1: 64 GiB memory needed, 1 GiB available",
        ),
        (obstacle(ObstacleKind.RESOURCE, "cpu", "g1", 8000, 500), "g1: 8 CPUs needed, 0.5 available"),
        (obstacle(ObstacleKind.RESOURCE, GPU, "g1", 1, -3), "g1: 1 GPU needed, 0 available"),
        (obstacle(ObstacleKind.SIZE, GPU, "g1"), "g1: 8 GPUs needed, the node has 2"),
        (obstacle(ObstacleKind.TAINT, "a=b:NoSchedule", "g1"), "g1: taint a=b:NoSchedule is not tolerated"),
        (obstacle(ObstacleKind.CORDON, node="g1"), "g1: cordoned"),
        (obstacle(ObstacleKind.SELECTOR, "pool=a", "g1"), "g1: does not match pool=a"),
        (obstacle(ObstacleKind.QUOTA, f"q: requests.{GPU}"), "quota q: 8 GPUs needed, 2 left"),
        (
            obstacle(ObstacleKind.QUOTA, "q: limits.cpu", needed=8000, free=500),
            "quota q: 8 CPUs as limits needed, 0.5 left",
        ),
        (obstacle(ObstacleKind.GANG, "train"), "gang train: 8 pods at once, 2 possible"),
        (obstacle(ObstacleKind.GANG, "train, task ps: members"), "gang train, task ps: 2 of 8 pods exist"),
        (obstacle(ObstacleKind.POLICY, "preemptionPolicy: Never"), "preemptionPolicy: Never"),
    ],
)
def test_an_obstacle_says_where_and_how_much(found: Obstacle, text: str) -> None:
    assert obstacle_text(found) == text


@pytest.mark.parametrize("reason", Reason)
def test_every_verdict_has_words(reason: Reason) -> None:
    assert REASONS[reason].phrase
    assert REASONS[reason].meaning
    assert sentence(verdict(reason), None, Situation())


@pytest.mark.parametrize("kind", ObstacleKind)
def test_every_obstacle_has_words_that_can_leave_out_the_node(kind: ObstacleKind) -> None:
    assert "secret-node" not in obstacle_text(obstacle(kind, "x", "secret-node"), shows_node=False)


def test_the_value_of_a_taint_is_only_for_readers_who_may_know_nodes() -> None:
    taint = obstacle(ObstacleKind.TAINT, "team=rivals:NoSchedule", "g1")

    assert obstacle_text(taint) == "g1: taint team=rivals:NoSchedule is not tolerated"
    assert obstacle_text(taint, shows_node=False) == "taint team:NoSchedule is not tolerated"
