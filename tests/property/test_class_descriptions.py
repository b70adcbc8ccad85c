"""Descriptions of classes beside what values and policies do: only true ones go without a finding, at any level."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gputally.formatting.amounts import listed
from gputally.model.kube.meta import AnnotatedMeta
from gputally.model.rules import Rules
from gputally.posture.document import Posture, posture_of
from gputally.posture.objects import ClassObject, PostureInput
from tests.property.examples import examples

PREEMPTS, NEVER, UNKNOWN = "PreemptLowerPriority", "Never", "PreemptHigherPriority"
NAMES = ("gpu-batch", "gpu-notebooks", "gpu-research", "gpu-etl", "gpu-ci")
KEPT = ("must not be preempted", "Never preempted.", "Non-preemptible reservations", "do not preempt")
VICTIMS = ("may preempt {}", "Reserved. Preempts {}, when they are busy", "can evict {}.")


class Level(NamedTuple):
    """Value and policy of a class."""

    value: int
    policy: str

    def may_preempt(self, other: "Level") -> bool:
        return self.policy == PREEMPTS and self.value > other.value


LEVELS = st.builds(Level, st.integers(1, 4), st.sampled_from((PREEMPTS, PREEMPTS, NEVER, UNKNOWN)))
FLEETS = st.lists(LEVELS, min_size=1, max_size=len(NAMES)).map(lambda each: dict(zip(NAMES, each, strict=False)))


def posture(fleet: dict[str, Level], described: str = "", text: str = "") -> Posture:
    classes = tuple(
        ClassObject(
            metadata=AnnotatedMeta(name=name),
            value=level.value,
            preemption_policy=level.policy,
            description=text if name == described else None,
        )
        for name, level in fleet.items()
    )
    return posture_of(PostureInput(source="property", priorityclasses=classes), Rules())


def found(fleet: dict[str, Level], described: str, text: str) -> set[str]:
    return {each.check for each in posture(fleet, described, text).findings if each.object.name == described}


@examples(100)
@given(FLEETS)
def test_the_matrix_has_the_pairs_that_value_and_an_existing_policy_permit(fleet: dict[str, Level]) -> None:
    shown = {(row.name, victim) for row in posture(fleet).preemptions for victim in row.may_preempt}

    assert shown == {(a, b) for a, high in fleet.items() for b, low in fleet.items() if high.may_preempt(low)}


@examples(200)
@given(FLEETS, st.sampled_from(KEPT), st.data())
def test_a_class_that_is_said_not_to_be_preempted_is_reported_wherever_one_may_preempt_it(
    fleet: dict[str, Level], text: str, data: st.DataObject
) -> None:
    described = data.draw(st.sampled_from(sorted(fleet)))
    own = fleet[described]
    is_preempted = any(each.may_preempt(own) for each in fleet.values())
    gave_up = own.policy == NEVER and any(each.value < own.value for each in fleet.values())

    checks = found(fleet, described, text)

    assert ("meant-not-to-be-preempted" in checks) is is_preempted
    assert ("never-is-no-protection" in checks) is (gave_up and not is_preempted)


@examples(200)
@given(FLEETS, st.sampled_from((*VICTIMS, "must not be preempted", "never preempts {}")), st.data())
def test_what_a_description_says_of_other_classes_is_no_claim_of_its_own(
    fleet: dict[str, Level], text: str, data: st.DataObject
) -> None:
    described = data.draw(st.sampled_from(sorted(fleet)))
    others = data.draw(st.lists(st.sampled_from(sorted(fleet)), min_size=1, unique=True))
    verb = text.rpartition(". ")[2].rpartition(", when")[0] or text.rpartition(". ")[2]
    said = verb.format(listed(data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)))).lower()

    checks = found(fleet, described, f"batch; {listed(others)} {said}")

    silent = found(fleet, described, "batch")
    assert (checks == silent) or described in others


@examples(200)
@given(FLEETS, st.sampled_from(VICTIMS), st.data())
def test_a_description_of_victims_is_reported_if_it_leaves_one_out(
    fleet: dict[str, Level], text: str, data: st.DataObject
) -> None:
    described = data.draw(st.sampled_from(sorted(fleet)))
    named = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    victims = {name for name, level in fleet.items() if fleet[described].may_preempt(level)}
    known = set(named) & fleet.keys()

    checks = found(fleet, described, text.format(listed(named)))

    assert ("understated-preemption" in checks) is bool(known and victims - known)
