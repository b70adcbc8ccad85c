from gputally.model.advice import ChangeKind, PriorityChoice, SuggestedChange, Suggestion
from gputally.model.kube.pods import LabelRequirement, NodeSelectorTerm
from gputally.model.needs import Needs, QuotaState, Situation, Taint
from gputally.model.verdicts import Eviction, Reason
from gputally.placement.node_group import HOSTNAME
from gputally.placement.room import Room
from gputally.placement.suggestions import suggestions
from gputally.placement.verdicts import NOWHERE, judged
from tests.unit.placement.cluster import GPU, needs, place, room, taken

ANOTHER_NODE = SuggestedChange(kind=ChangeKind.ADD_NODE, node="n1")
CLASSES = tuple(PriorityChoice(f"p{value}", value) for value in (50, 150, 250))


def found(waiting: Needs, nodes: Room, situation: Situation = NOWHERE) -> list[Suggestion]:
    verdict = judged(waiting, nodes, situation)
    return list(suggestions(verdict, waiting, nodes, situation, classes=CLASSES))


def changes(waiting: Needs, nodes: Room, situation: Situation = NOWHERE) -> list[list[SuggestedChange]]:
    return [list(each.changes) for each in found(waiting, nodes, situation)]


def test_nothing_helps_a_pod_that_fits() -> None:
    assert found(needs(), room()) == []


def test_a_taint_is_tolerated_or_removed() -> None:
    tainted = room(place(taints=(Taint("team", "a", "NoSchedule"),)))

    assert changes(needs(), tainted) == [
        [SuggestedChange(kind=ChangeKind.TOLERATE, what="team=a:NoSchedule")],
        [SuggestedChange(kind=ChangeKind.REMOVE_TAINT, what="team=a:NoSchedule", node="n1")],
    ]


def test_a_selector_is_dropped_and_a_cordon_lifted_both_if_both_are_needed() -> None:
    selecting = needs(node_selector=(("pool", "a"),))
    drop, lift = (
        SuggestedChange(kind=ChangeKind.DROP_SELECTOR, what="pool=a"),
        SuggestedChange(kind=ChangeKind.UNCORDON, node="n1"),
    )

    assert changes(selecting, room()) == [[drop]]
    assert changes(needs(), room(place(is_cordoned=True))) == [[lift]]
    assert changes(selecting, room(place(is_cordoned=True))) == [[lift, drop]]


def test_waiting_a_higher_class_and_a_smaller_request_help_against_a_lack_of_capacity() -> None:
    full = room(place(gpu=4), a=("n1", taken(gpu=3)), b=("n1", taken(priority=200)))

    assert found(needs(gpu=2), full) == [
        Suggestion(
            changes=(SuggestedChange(kind=ChangeKind.WAIT, what=GPU, node="n1", amount=2, pods=("a",)),),
            reason=Reason.SCHEDULABLE,
        ),
        Suggestion(changes=(ANOTHER_NODE,), reason=Reason.SCHEDULABLE),
        Suggestion(
            changes=(SuggestedChange(kind=ChangeKind.USE_CLASS, what="p150"),),
            reason=Reason.PREEMPTING,
            eviction=Eviction(node="n1", victims=("a",)),
        ),
    ]
    full.release("n1", "b")
    less = SuggestedChange(kind=ChangeKind.REQUEST_LESS, what=GPU, amount=1)
    assert [less] in changes(needs(gpu=2), full)


def test_the_largest_request_that_fits_is_suggested() -> None:
    nodes = room(place(cpu=10), web=("n1", taken(gpu=0, cpu=3)))

    assert [SuggestedChange(kind=ChangeKind.REQUEST_LESS, what="cpu", amount=7000)] in changes(needs(cpu=8), nodes)
    assert changes(needs(gpu=2**40), room()) == [[SuggestedChange(kind=ChangeKind.REQUEST_LESS, what=GPU, amount=8)]]


def test_a_policy_that_permits_preemption_helps_and_tells_the_victims() -> None:
    low = room(place(gpu=1), low=("n1", taken(priority=1)))

    node, policy = found(needs(may_preempt=False), low)[:2]

    assert node.changes == (ANOTHER_NODE,), "it costs others nothing"
    assert policy.changes == (SuggestedChange(kind=ChangeKind.PREEMPT),)
    assert policy.eviction == Eviction(node="n1", victims=("low",))


def test_a_quota_is_raised_by_what_is_missing_and_gates_are_removed_together() -> None:
    quota = Situation(quota=QuotaState(name="q", what="pods", hard=4, used=3, needed=2))

    assert changes(needs(), room(), quota) == [[SuggestedChange(kind=ChangeKind.RAISE_QUOTA, what="q: pods", amount=1)]]
    gated = changes(needs(gates=("a", "b")), room())
    assert gated == [[SuggestedChange(kind=ChangeKind.REMOVE_GATE, what=gate) for gate in ("a", "b")]]


def test_no_change_of_the_nodes_makes_a_gang_complete() -> None:
    assert changes(needs(gpu=9), Room()) == []


def test_a_smaller_request_and_a_toleration_help_together() -> None:
    small = room(place(gpu=2, taints=(Taint("t", "", "NoSchedule"),)))

    assert changes(needs(gpu=4), small) == [
        [
            SuggestedChange(kind=ChangeKind.TOLERATE, what="t:NoSchedule"),
            SuggestedChange(kind=ChangeKind.REQUEST_LESS, what=GPU, amount=2),
        ]
    ]


def test_a_term_that_has_lost_its_last_requirement_matches_all_nodes() -> None:
    term = NodeSelectorTerm(match_expressions=(LabelRequirement(key="pool", operator="Exists"),))

    assert changes(needs(node_terms=(term,)), room()) == [[SuggestedChange(kind=ChangeKind.DROP_SELECTOR, what="pool")]]


def test_of_equal_nodes_the_one_whose_pods_end_by_themselves_is_named() -> None:
    serving, training = taken(gpu=8, priority=900, serving=True), taken(gpu=8, priority=900)
    nodes = room(place("n1"), place("n2"), front=("n1", serving), train=("n2", training))

    assert changes(needs(), nodes)[0] == [
        SuggestedChange(kind=ChangeKind.WAIT, what=GPU, node="n2", amount=1, pods=("train",))
    ]


def test_nobody_waits_for_pods_that_serve_users() -> None:
    nodes = room(place(), front=("n1", taken(gpu=8, priority=900, serving=True)))

    assert judged(needs(), nodes).reason is Reason.CAPACITY
    assert changes(needs(), nodes) == [[ANOTHER_NODE]]


def test_another_node_helps_only_pods_that_such_a_node_would_hold_whatever_its_name() -> None:
    full = room(place(labels=((HOSTNAME, "n1"),)), train=("n1", taken(gpu=8, priority=900)))

    assert [ANOTHER_NODE] in changes(needs(), full)
    assert [ANOTHER_NODE] not in changes(needs(node_selector=((HOSTNAME, "n1"),)), full)
    assert [ANOTHER_NODE] not in changes(needs(gpu=9), full)


def test_a_gated_pod_is_told_of_another_node_where_pods_that_serve_users_fill_the_present_ones() -> None:
    full = room(place(gpu=1), web=("n1", taken(serving=True)))
    gate = SuggestedChange(kind=ChangeKind.REMOVE_GATE, what="a")

    assert changes(needs(gates=("a",)), full) == [[gate, ANOTHER_NODE]]
    assert changes(needs(gates=("a",), node_selector=((HOSTNAME, "n1"),)), full) == [], "it selects nodes by name"
