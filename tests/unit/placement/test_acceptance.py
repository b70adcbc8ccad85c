from collections.abc import Mapping

import pytest

from gputally.model.kube.pods import LabelRequirement, NodeSelectorTerm, Toleration
from gputally.model.needs import Taint
from gputally.model.verdicts import ObstacleKind
from gputally.placement.taints_and_affinity import exclusions, failing, tolerates
from tests.unit.placement.cluster import needs, place

TAINT = Taint("team", "a", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        (Toleration(key="team", operator="Equal", value="a", effect="NoSchedule"), True),
        (Toleration(key="team", value="a"), True),
        (Toleration(key="team", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="team", value="b"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="team", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="team", operator="Unknown", value="a"), False),
    ],
)
def test_a_toleration_matches_by_key_value_and_effect(toleration: Toleration, *, matches: bool) -> None:
    assert tolerates([toleration], TAINT) is matches


@pytest.mark.parametrize(
    ("effect", "excludes"), [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False)]
)
def test_a_preference_keeps_no_pod_away(effect: str, *, excludes: bool) -> None:
    assert bool(exclusions(needs(), place(taints=(Taint("team", "", effect),)))) is excludes


def test_the_copy_of_a_cordon_among_the_taints_is_no_obstacle_of_its_own() -> None:
    cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")

    found = exclusions(needs(), place(is_cordoned=True, taints=(cordon,)))

    assert [each.kind for each in found] == [ObstacleKind.CORDON]


def test_a_pod_that_tolerates_cordons_runs_on_cordoned_nodes() -> None:
    tolerant = needs(tolerations=(Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),))

    assert exclusions(tolerant, place(is_cordoned=True)) == ()


LABELS = {"pool": "a", "size": "16", "broken": "12x"}


@pytest.mark.parametrize(
    ("operator", "key", "values", "holds"),
    [
        ("In", "pool", ("a", "b"), True),
        ("In", "pool", ("b",), False),
        ("In", "none", ("a",), False),
        ("NotIn", "pool", ("a",), False),
        ("NotIn", "pool", ("b",), True),
        ("NotIn", "none", ("a",), True),
        ("Exists", "pool", (), True),
        ("Exists", "none", (), False),
        ("DoesNotExist", "pool", (), False),
        ("DoesNotExist", "none", (), True),
        ("Gt", "size", ("15",), True),
        ("Gt", "size", ("16",), False),
        ("Lt", "size", ("17",), True),
        ("Lt", "size", ("-17",), False),
        ("Gt", "none", ("1",), False),
        ("Gt", "broken", ("1",), False),
        ("Lt", "size", ("9" * 30,), False),
        ("Gt", "size", ("1", "2"), False),
        ("Gt", "size", ("-+5",), False),
        ("Like", "pool", ("a",), False),
    ],
)
def test_a_requirement_holds_as_kubernetes_defines(
    operator: str, key: str, values: tuple[str, ...], *, holds: bool
) -> None:
    term = NodeSelectorTerm(match_expressions=(LabelRequirement(key=key, operator=operator, values=values),))

    assert (failing(term, LABELS, "n1") == ()) is holds


def term(**labels: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=tuple(
            LabelRequirement(key=key, operator="In", values=(value,)) for key, value in labels.items()
        )
    )


def excluded(terms: tuple[NodeSelectorTerm, ...], labels: Mapping[str, str]) -> list[str]:
    found = exclusions(needs(node_terms=terms), place(labels=tuple(sorted(labels.items()))))
    return [each.what for each in found]


def test_one_matching_term_is_enough() -> None:
    assert excluded((term(pool="b", size="1"), term(pool="a")), {"pool": "a"}) == []


def test_of_terms_that_do_not_match_the_closest_is_named() -> None:
    assert excluded((term(pool="b", size="1"), term(pool="a", size="2")), {"pool": "a"}) == ["size in (2)"]


def test_a_requirement_that_is_written_twice_counts_once() -> None:
    twice = NodeSelectorTerm(match_expressions=2 * (term(size="2").match_expressions or ()))

    assert excluded((term(pool="b", zone="1"), twice), {"pool": "a"}) == ["size in (2)"]


def test_a_term_without_requirements_matches_no_node() -> None:
    assert len(excluded((NodeSelectorTerm(),), {"pool": "a"})) == 1


def test_a_field_selects_a_node_by_its_name() -> None:
    by_name = NodeSelectorTerm(match_fields=(LabelRequirement(key="metadata.name", operator="In", values=("n1",)),))

    assert exclusions(needs(node_terms=(by_name,)), place("n1")) == ()
    assert [each.what for each in exclusions(needs(node_terms=(by_name,)), place("n2"))] == ["metadata.name in (n1)"]


def test_every_obstacle_is_named() -> None:
    found = exclusions(
        needs(node_selector=(("pool", "b"), ("zone", "1"))),
        place(taints=(TAINT,), is_cordoned=True, labels=(("pool", "a"),)),
    )

    assert [(each.kind, each.what) for each in found] == [
        (ObstacleKind.CORDON, "node.kubernetes.io/unschedulable"),
        (ObstacleKind.TAINT, "team=a:NoSchedule"),
        (ObstacleKind.SELECTOR, "pool=b"),
        (ObstacleKind.SELECTOR, "zone=1"),
    ]
