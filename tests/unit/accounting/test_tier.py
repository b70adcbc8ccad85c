import pytest

from gputally.accounting.terms.tier import tier_of
from gputally.model.rules import Rules, TierRule


def rules(*tiers: TierRule) -> Rules:
    return Rules(tiers=tiers)


def test_without_configuration_each_priority_class_is_its_own_tier() -> None:
    assert tier_of("gpu-training", 1000, Rules()) == "gpu-training"


def test_without_configuration_a_pod_without_a_class_is_of_tier_none() -> None:
    assert tier_of("", 0, Rules()) == "none"


def test_the_first_matching_rule_decides() -> None:
    ordered = rules(TierRule(tier="high", min_priority=100), TierRule(tier="any"))

    assert tier_of("a", 100, ordered) == "high"
    assert tier_of("a", 99, ordered) == "any"


def test_a_pod_that_no_rule_matches_is_of_tier_none() -> None:
    assert tier_of("a", 5, rules(TierRule(tier="high", min_priority=100))) == "none"


def test_class_and_priority_both_have_to_match() -> None:
    both = rules(TierRule(tier="yes", class_name="prod", min_priority=10, max_priority=20))

    assert [tier_of("prod", 10, both), tier_of("prod", 20, both)] == ["yes", "yes"]
    assert {tier_of("prod", 9, both), tier_of("prod", 21, both), tier_of("test", 15, both)} == {"none"}


def test_a_pattern_matches_the_whole_class_name() -> None:
    whole = rules(TierRule(tier="yes", class_name="gpu"))

    assert tier_of("gpu-training", 0, whole) == "none"


def test_a_pod_without_a_priority_counts_as_priority_zero() -> None:
    assert tier_of("", None, rules(TierRule(tier="low", max_priority=0))) == "low"
    assert tier_of("", None, rules(TierRule(tier="high", min_priority=1))) == "none"


@pytest.mark.parametrize(
    ("template", "tier"), [("{1}", "gold"), ("{metal}-{class}", "gold-lab-gold"), ("tier {2}", "tier ")]
)
def test_a_tier_can_be_built_from_groups_of_the_class_name(template: str, tier: str) -> None:
    pattern = "lab-(?P<metal>gold|silver)(-.*)?"

    assert tier_of("lab-gold", 0, rules(TierRule(tier=template, class_name=pattern))) == tier


def test_a_tier_that_comes_out_empty_is_none() -> None:
    assert tier_of("lab-", 0, rules(TierRule(tier="{1}", class_name="lab-(.*)"))) == "none"


def test_braces_in_a_class_name_are_not_expanded_again() -> None:
    assert tier_of("{class}", 0, Rules()) == "{class}"
