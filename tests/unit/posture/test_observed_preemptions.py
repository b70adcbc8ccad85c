"""Observed preemptions beside those that classes permit."""

from collections.abc import Mapping

from gputally.ledger.records import PriorityClassRecord, Window
from gputally.model.rules import Rules, TierRule
from gputally.posture.classes import CatalogueClass, catalogue
from gputally.posture.objects import ClassObject
from gputally.posture.preemptions import ObservedPreemptions, PreemptionHistory, observed_preemptions
from tests.core.policies import priority_class

Counts = Mapping[tuple[str, str], int]
RULES = Rules()


def classes(**values: tuple[int, str]) -> tuple[CatalogueClass, ...]:
    found = [
        ClassObject(metadata=priority_class(name, value).metadata, value=value, preemption_policy=policy)  # type: ignore[arg-type]  # annotations play no role
        for name, (value, policy) in values.items()
    ]
    return catalogue(found, RULES)


PRESENT = classes(high=(1000, ""), middle=(500, "Never"), low=(100, ""))


def observed(
    counts: Counts, present: tuple[CatalogueClass, ...] = PRESENT, *, older: tuple[PriorityClassRecord, ...] = ()
) -> ObservedPreemptions:
    """`counts` are by victim and preemptor, as in the ledger."""
    history = PreemptionHistory(window=Window(0, 10**12), counts=counts, classes=older)
    return observed_preemptions(history, present, RULES)


def permitted(found: ObservedPreemptions) -> dict[tuple[str, str], bool | None]:
    """By preemptor and victim."""
    return {(each.preemptor, each.victim): each.permitted for each in found.pairs}


def forbidden(found: ObservedPreemptions) -> list[tuple[str, str, int]]:
    return [(each.preemptor, each.victim, each.observed) for each in found.pairs if each.is_forbidden]


def test_values_and_policies_permit() -> None:
    assert {pair for pair, is_permitted in permitted(observed({})).items() if is_permitted} == {
        ("high", "middle"),
        ("high", "low"),
    }


def test_what_was_observed_and_is_permitted_is_not_marked() -> None:
    found = observed({("low", "high"): 12})

    assert [each.observed for each in found.pairs if (each.preemptor, each.victim) == ("high", "low")] == [12]
    assert forbidden(found) == []
    assert found.sentences == ()


def test_a_preemption_of_a_higher_tier_and_one_by_a_class_that_never_preempts_are_marked() -> None:
    found = observed({("high", "low"): 3, ("low", "middle"): 1})

    assert forbidden(found) == [("middle", "low", 1), ("low", "high", 3)]
    assert found.sentences[0].startswith("middle preempted low 1 time, which no class permits")


def test_a_class_of_the_window_permits_what_those_of_today_do_not() -> None:
    before = PriorityClassRecord(
        name="low", from_us=0, to_us=5, value=2000, preemption_policy="PreemptLowerPriority", is_default=False
    )

    assert forbidden(observed({("high", "low"): 3}, older=(before,))) == []


def test_an_unknown_preemptor_is_neither_permitted_nor_marked() -> None:
    found = observed({("low", "unknown"): 2})

    assert permitted(found)["unknown", "low"] is None
    assert found.tiers[-1] == "unknown"
    assert all(each.victim != "unknown" for each in found.pairs)


def test_a_tier_without_a_known_class_is_unknown() -> None:
    assert permitted(observed({("gone", "high"): 2}))["high", "gone"] is None


def test_pods_without_a_class_have_priority_0() -> None:
    found = permitted(observed({("none", "low"): 2}))

    assert (found["low", "none"], found["none", "low"]) == (True, False)


def test_classes_of_one_tier_are_one_row() -> None:
    rules = Rules(tiers=(TierRule(tier="all"),))
    history = PreemptionHistory(window=Window(0, 1), counts={("all", "all"): 1}, classes=())
    one_tier = catalogue(
        [ClassObject(metadata=priority_class(name, 1).metadata, value=value) for name, value in (("a", 1), ("b", 2))],  # type: ignore[arg-type]  # as above
        rules,
    )

    [pair] = observed_preemptions(history, one_tier, rules).pairs
    assert (pair.permitted, pair.observed) == (True, 1)
