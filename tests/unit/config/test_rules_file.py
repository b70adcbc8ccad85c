from pathlib import Path

import pytest

from gputally.accounting.terms.tier import serves, tier_of
from gputally.config.rules_file import default_rules, read_rules
from gputally.errors import ConfigError
from gputally.model.rules import (
    ChargeCeilings,
    HamiBasis,
    KaiNames,
    Limits,
    MigBasis,
    ResourceRule,
    Rules,
    TenantSource,
)

EXAMPLE = Path(__file__).parents[3] / "examples" / "config.yaml"


def rules(text: str, tmp_path: Path) -> Rules:
    path = tmp_path / "config.yaml"
    path.write_text("kind: Configuration\n" + text)
    return read_rules(path)


def problems(text: str, tmp_path: Path) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        rules(text, tmp_path)
    return [f"{problem.field}: {problem.text}" for problem in raised.value.problems]


def test_a_file_that_configures_nothing_means_the_defaults(tmp_path: Path) -> None:
    assert rules("", tmp_path) == default_rules()


@pytest.mark.parametrize(
    ("preset", "tiers"),
    [
        (
            "inference-training",
            ["inference-critical", "inference-standard", "training-high", "training-standard", "training-low"],
        ),
        ("four-tier", ["gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive"]),
        ("three-tier", ["critical", "normal", "scavenger"]),
        ("research", ["production-retrain", "experiment-high", "experiment-normal", "development"]),
    ],
)
def test_a_preset_knows_its_tiers_and_leaves_other_classes_out(preset: str, tiers: list[str], tmp_path: Path) -> None:
    found = rules(f"tiers: {{preset: {preset}}}", tmp_path)

    assert list(found.known_tiers) == tiers
    assert [tier_of(name, 0, found) for name in tiers] == tiers
    assert {tier_of("system-node-critical", 2_000_001_000, found), tier_of("", 0, found)} == {"none"}


@pytest.mark.parametrize(
    ("text", "serving", "not_serving"),
    [
        ("", ["prod-serving"], ["gold", "critical"]),
        ("tiers: {preset: inference-training}", ["inference-standard", "prod-serving"], ["training-high"]),
        ("tiers: {preset: four-tier}", ["gpu-serving"], ["gpu-training", "gpu-interactive"]),
        ("tiers: {preset: three-tier}", ["critical"], ["normal", "critical-2"]),
        ("tiers: {preset: research}", [], ["production-retrain", "prod-serving"]),
        ("tiers: {preset: research}\nserving: [production-retrain]", ["production-retrain"], ["development"]),
        ("serving: gold", ["gold"], ["prod-serving"]),
        ("serving: []", [], ["prod-serving"]),
    ],
)
def test_the_list_the_preset_or_the_names_say_which_tiers_serve(
    text: str, serving: list[str], not_serving: list[str], tmp_path: Path
) -> None:
    found = rules(text, tmp_path)

    assert [tier for tier in (*serving, *not_serving) if serves(tier, found)] == serving


def test_a_tier_rule_may_read_a_label(tmp_path: Path) -> None:
    text = """
tiers:
  rules:
    - {label: kueue.x-k8s.io/priority-class, matches: "(prod|dev)-(.*)", tier: "{1} {value} {class}"}
    - {tier: "{class}"}
"""
    found = rules(text, tmp_path)

    assert tier_of("low", 0, found, (("kueue.x-k8s.io/priority-class", "prod-high"),)) == "prod prod-high low"
    assert tier_of("low", 0, found) == "low"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("{tier: a, matches: b}", "tiers.rules[0].matches: needs `label`"),
        ("{tier: '{value}'}", "tiers.rules[0].tier: {value} is not a known placeholder; use {class}"),
        ("{tier: '{1}', label: a, class: '(b)'}", "tiers.rules[0].tier: {1} is not a known placeholder"),
        ("{tier: a, label: 'a b'}", "tiers.rules[0].label: "),
        ("{tier: a, label: b, matches: '('}", "tiers.rules[0].matches: "),
        ("{label: b}", "tiers.rules[0].tier: is missing; add the tier's name, or {value}"),
    ],
)
def test_a_mistake_in_a_rule_that_reads_a_label_is_named(rule: str, problem: str, tmp_path: Path) -> None:
    [found] = problems(f"tiers: {{rules: [{rule}]}}", tmp_path)

    assert found.startswith(problem)


def test_a_label_rule_hides_no_rule_but_those_of_the_same_label(tmp_path: Path) -> None:
    text = "tiers: {{rules: [{{tier: x, label: a}}, {later}]}}"

    assert rules(text.format(later="{tier: y, class: b}"), tmp_path).tiers[1].tier == "y"
    assert rules(text.format(later="{tier: y, label: b}"), tmp_path).tiers[1].tier == "y"
    [problem] = problems(text.format(later="{tier: y, label: a, matches: b}"), tmp_path)
    assert "is never reached" in problem


def test_which_tiers_serve_changes_nothing_that_pods_are_classified_by(tmp_path: Path) -> None:
    assert rules("serving: [gold]", tmp_path).digest == rules("serving: []", tmp_path).digest == default_rules().digest


def test_a_serving_pattern_that_is_no_expression_is_refused(tmp_path: Path) -> None:
    [problem] = problems("serving: [gold, '(']", tmp_path)

    assert problem.startswith("serving[1]: ")


def test_own_tier_rules_come_before_those_of_the_preset(tmp_path: Path) -> None:
    text = "tiers: {preset: three-tier, rules: [{tier: urgent, class: critical, min_priority: 9}]}"
    found = rules(text, tmp_path)

    assert [tier_of("critical", priority, found) for priority in (9, 8)] == ["urgent", "critical"]
    assert found.known_tiers == ("urgent", "critical", "normal", "scavenger")


def test_without_a_preset_only_the_own_tier_rules_count(tmp_path: Path) -> None:
    found = rules('tiers: {rules: [{tier: "{1}", class: "gpu-(.*)"}], known: [training, batch]}', tmp_path)

    assert [tier_of(name, 0, found) for name in ("gpu-training", "other")] == ["training", "none"]
    assert found.known_tiers == ("training", "batch")


def test_known_tiers_alone_leave_each_class_its_own_tier(tmp_path: Path) -> None:
    found = rules("tiers: {known: a}", tmp_path)

    assert (found.tiers, found.known_tiers) == (Rules().tiers, ("a",))


def test_more_known_tiers_than_the_limit_are_refused(tmp_path: Path) -> None:
    text = "tiers: {preset: three-tier}\nlimits: {tiers: 2}"

    assert problems(text, tmp_path) == ["tiers: defines 3 tiers, but limits.tiers allows 2; raise it"]


def test_a_preset_behind_a_rule_that_takes_every_pod_is_refused(tmp_path: Path) -> None:
    (problem,) = problems("tiers: {preset: three-tier, rules: [{tier: a, class: b}, {tier: c}]}", tmp_path)

    assert problem == "tiers.preset: is never reached: rules[1] matches every pod; remove one of them"


def test_a_tenant_rule_behind_one_that_takes_every_namespace_is_refused(tmp_path: Path) -> None:
    (problem,) = problems("tenants: {rules: [{from: namespace}, {from: pod-label, key: team}]}", tmp_path)

    assert problem.startswith("tenants.rules[0]: matches every namespace")


@pytest.mark.parametrize(
    ("weight", "micro_gpus"),
    [("1", 1_000_000), ("0.5", 500_000), ('"1/7"', 142_857), ("1/3", 333_333), ("8", 8_000_000)],
)
def test_a_weight_is_a_share_of_a_gpu_rounded_down(weight: str, micro_gpus: int, tmp_path: Path) -> None:
    found = rules(f"resources: {{rules: [{{pattern: a/b, weight: {weight}}}]}}", tmp_path)

    assert found.resources == (ResourceRule(pattern="a/b", weight=micro_gpus),)
    assert found.built_in_resources


@pytest.mark.parametrize("weight", ["0", "1/0", "1/10000000", "1025", "-1", "half", "1e-1", "1/2/3"])
def test_a_weight_that_is_no_share_of_a_gpu_is_refused(weight: str, tmp_path: Path) -> None:
    (problem,) = problems(f"resources: {{rules: [{{pattern: a/b, weight: {weight}}}]}}", tmp_path)

    assert problem.startswith("resources.rules[0].weight: ")


def test_the_built_in_resources_can_be_dropped(tmp_path: Path) -> None:
    found = rules("resources: {defaults: false, rules: [{pattern: a/b, weighing: replica}]}", tmp_path)

    assert found.resources == (ResourceRule(pattern="a/b", weighing="replica"),)
    assert not found.built_in_resources


def test_a_configuration_under_which_nothing_is_a_gpu_is_refused(tmp_path: Path) -> None:
    (problem,) = problems("resources: {defaults: false}", tmp_path)

    assert problem.startswith("resources.defaults: is false and there are no rules")


def test_pools_mig_and_limits_are_read(tmp_path: Path) -> None:
    found = rules("pools: {labels: [a, b]}\nmig: {basis: memory}\nlimits: {tenants: 7}", tmp_path)

    assert (found.pool_labels, found.mig_basis) == (("a", "b"), MigBasis.MEMORY)
    assert found.limits == Limits(tenants=7)


def test_ceilings_of_waits_are_read_and_change_nothing_about_the_classification(tmp_path: Path) -> None:
    found = rules("waits: {ceiling_gpus: 64}", tmp_path)

    assert found.waits == ChargeCeilings(gpus=64)
    assert rules("waits: {ceiling_gpus_per_pod: 16}", tmp_path).waits == ChargeCeilings(gpus_per_pod=16)
    assert found.digest == default_rules().digest


@pytest.mark.parametrize("ceiling", ["0", "-1", "1000001", "many", "1.5"])
def test_a_ceiling_that_is_no_number_of_gpus_is_refused(ceiling: str, tmp_path: Path) -> None:
    (problem,) = problems(f"waits: {{ceiling_gpus: {ceiling}}}", tmp_path)

    assert problem.startswith("waits.ceiling_gpus: ")


def test_the_digest_changes_with_the_rules_and_not_with_the_layout(tmp_path: Path) -> None:
    plain = rules("tiers: {preset: three-tier}", tmp_path)
    laid_out = rules("tiers:\n  # the same\n  preset: three-tier\n", tmp_path)
    other = rules("tiers: {preset: four-tier}", tmp_path)

    assert plain.digest == laid_out.digest
    assert len({plain.digest, other.digest, default_rules().digest}) == 3


def test_the_example_teaches_every_source_of_tenants() -> None:
    found = read_rules(EXAMPLE)

    assert {rule.source for rule in found.tenants} == set(TenantSource)
    assert tier_of("lab-gold", 0, found) == "lab-gold"


def test_a_price_book_is_no_configuration() -> None:
    with pytest.raises(ConfigError, match="kind: unknown 'PriceBook'; use Configuration"):
        read_rules(EXAMPLE.parent / "prices" / "research-team.yaml")


def test_shares_of_hami_and_kai_can_be_configured(tmp_path: Path) -> None:
    found = rules("hami: {basis: larger}\nkai: {scheduler: kai-2, reservations: kai-holds}", tmp_path)

    assert found.hami_basis is HamiBasis.LARGER
    assert found.kai == KaiNames(scheduler="kai-2", reservations="kai-holds")
    assert found.digest != rules("hami: {basis: cores}", tmp_path).digest


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("hami: {basis: compute}", "hami.basis: unknown 'compute'; use memory, cores or larger"),
        ("kai: {scheduler: KAI Scheduler}", "kai.scheduler: 'KAI Scheduler' is not a valid object name"),
        ("resources: {rules: [{pattern: a/b, weighing: kai}]}", "resources.rules[0].weighing: unknown 'kai'"),
    ],
)
def test_shares_that_cannot_be_are_refused(section: str, problem: str, tmp_path: Path) -> None:
    (found,) = problems(section, tmp_path)

    assert found.startswith(problem)
