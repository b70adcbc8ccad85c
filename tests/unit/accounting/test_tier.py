from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

import pytest
from msgspec import structs

from gputally.accounting.facts.lifetime import new_record
from gputally.accounting.terms.tier import tier_labels, tier_of, tier_of_pod
from gputally.model.rules import Rules, TierRule
from tests.core.manifests import NodeForm, PodForm, as_pod
from tests.core.replay import Replay


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


def by_label() -> Rules:
    return rules(TierRule(tier="{value}", label="workload-type"), TierRule(tier="{class}"))


@pytest.mark.parametrize(
    ("labels", "tier"),
    [
        ((("workload-type", "inference"),), "inference"),
        ((("workload-type", ""),), "low"),
        ((("other", "inference"),), "low"),
        ((), "low"),
    ],
)
def test_a_rule_reads_a_label_and_passes_pods_without_it_on(labels: tuple[tuple[str, str], ...], tier: str) -> None:
    assert tier_of("low", 0, by_label(), labels) == tier


def test_a_label_must_match_as_a_whole_and_gives_its_groups() -> None:
    both = rules(TierRule(tier="{1}-{class}", label="team-tier", matches="t-(a|b)"), TierRule(tier="rest"))

    assert tier_of("gold", 0, both, (("team-tier", "t-a"),)) == "a-gold"
    assert tier_of("gold", 0, both, (("team-tier", "t-ab"),)) == "rest"


def test_a_rule_with_class_and_label_needs_both() -> None:
    both = rules(TierRule(tier="{value}", class_name="gold", label="t"))

    assert tier_of("gold", 0, both, (("t", "x"),)) == "x"
    assert {tier_of("gold", 0, both), tier_of("silver", 0, both, (("t", "x"),))} == {"none"}


def test_only_the_labels_that_tier_rules_read_are_looked_at() -> None:
    record = new_record(as_pod(PodForm(tier="low", labels={"workload-type": "inference", "app": "x"})), (), at_us=0)
    labelled = structs.replace(record, labels=(("app", "x"), ("workload-type", "inference")))

    assert tier_labels(by_label()) == {"workload-type"}
    assert tier_of_pod(labelled, by_label()) == "inference"
    assert tier_of_pod(labelled, Rules()) == "low"


def test_a_label_that_changes_counts_from_when_it_is_observed() -> None:
    replay = Replay(rules=by_label())
    pod = PodForm(tier="low", labels={"workload-type": "training"}, node="n1", scheduled=10, started=12)
    replay.see(NodeForm(), pod, at=13)
    replay.see(replace(pod, labels={"workload-type": "inference"}, version=2), at=20)

    by_tier: dict[str, Fraction] = defaultdict(Fraction)
    for labels, seconds in replay.gpu_seconds(30).items():
        by_tier[labels[0]] += seconds
    assert by_tier == {"training": 10, "inference": 10}
