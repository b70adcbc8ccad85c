from gputally.model.needs import Needs, Situation, Taint
from gputally.model.verdicts import FindingKind, PriorityFinding
from gputally.placement.priority_findings import MAX_PODS, findings
from gputally.placement.room import Room
from gputally.placement.verdicts import NOWHERE, judged
from tests.unit.placement.cluster import needs, place, room, taken


def found(
    waiting: Needs, nodes: Room, situation: Situation = NOWHERE, since: int | None = None
) -> list[PriorityFinding]:
    return list(findings(waiting, nodes, judged(waiting, nodes, situation), since_us=since))


LOW = room(place(gpu=3), old=("n1", taken(priority=1, at=5)), new=("n1", taken(gpu=2, priority=2, at=9)))


def test_pods_of_lower_priority_run_where_it_could() -> None:
    assert found(needs(gpu=1, may_preempt=False), LOW) == [
        PriorityFinding(kind=FindingKind.OUTRANKED, pods=("old", "new"), gpus=3)
    ]


def test_it_starves_if_they_started_after_it_began_to_wait() -> None:
    assert found(needs(gpu=1, may_preempt=False), LOW, since=6) == [
        PriorityFinding(kind=FindingKind.OUTRANKED, pods=("old", "new"), gpus=3),
        PriorityFinding(kind=FindingKind.STARVATION, pods=("new",), gpus=2, latest_us=9),
    ]


def test_a_pod_that_is_about_to_preempt_is_in_order() -> None:
    assert found(needs(), LOW) == []


def test_pods_on_nodes_that_it_does_not_accept_do_not_count() -> None:
    tainted = place("n2", gpu=1, taints=(Taint("t", "", "NoSchedule"),))
    nodes = room(place(gpu=1), tainted, equal=("n1", taken()), low=("n2", taken(priority=1)))

    assert found(needs(), nodes) == []


def test_an_inversion_names_pods_that_serve_nobody() -> None:
    nodes = room(place(gpu=2), train=("n1", taken(priority=300)), serve=("n1", taken(priority=300, serving=True)))

    assert found(needs(), nodes, Situation(is_serving=True)) == [
        PriorityFinding(kind=FindingKind.INVERSION, pods=("train",), gpus=1)
    ]


def test_of_many_pods_only_some_are_named_but_all_gpus_are_counted() -> None:
    pods = {f"p{number}": ("n1", taken(priority=1)) for number in range(50)}

    (finding,) = found(needs(may_preempt=False), room(place(gpu=50), **pods))

    assert (len(finding.pods), finding.gpus) == (MAX_PODS, 50)
