"""Files whose every field is readable, and which would do something else than they say."""

from pathlib import Path
from time import perf_counter

import pytest

from gputally.accounting.terms.tier import tier_of
from gputally.config.read import check
from gputally.config.rules_file import read_rules
from gputally.config.web_file import read_web_config
from gputally.errors import ConfigError

PRICES = """
kind: PriceBook
currency: EUR
basis: gpu
"""


def configured(text: str, tmp_path: Path) -> list[str]:
    """The problems of a configuration."""
    return problems("kind: Configuration\n" + text, tmp_path)


def priced(text: str, tmp_path: Path) -> list[str]:
    """The problems of a price book."""
    return problems(PRICES + text, tmp_path)


def problems(text: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    return [f"{problem.field}: {problem.text}" for problem in check([path])]


@pytest.mark.parametrize(
    "pattern", ["cpu", "*", "c*", "memory", "hugepages-*", "pods", "*/*", "?/gpu", "kubernetes.io/*"]
)
def test_a_resource_pattern_takes_nothing_that_is_no_makers_device(pattern: str, tmp_path: Path) -> None:
    (problem,) = configured(f'resources: {{rules: [{{pattern: "{pattern}"}}]}}', tmp_path)

    assert problem == (
        f"resources.rules[0].pattern: {pattern!r} matches resources that are not GPUs; "
        "use the vendor's domain and a name, such as example.com/gpu"
    )


def test_a_resource_pattern_holds_what_resources_can(tmp_path: Path) -> None:
    (problem,) = configured('resources: {rules: [{pattern: "example.com/my gpu"}]}', tmp_path)

    assert problem == (
        "resources.rules[0].pattern: 'example.com/my gpu' matches no resource: names cannot contain ' '; "
        "use the name on the node"
    )


def test_a_resource_rule_behind_a_wider_one_is_refused(tmp_path: Path) -> None:
    (problem,) = configured('resources: {rules: [{pattern: "a.io/*"}, {pattern: a.io/gpu}]}', tmp_path)

    assert problem == (
        "resources.rules[1]: is never reached: resources.rules[0] matches everything it does; move it before that rule"
    )


def test_a_resource_rule_that_hides_built_in_ones_says_so(tmp_path: Path) -> None:
    (problem,) = configured('resources: {rules: [{pattern: "nvidia.com/*"}]}', tmp_path)

    assert problem == (
        "resources.rules[0]: also matches nvidia.com/gpu.shared, nvidia.com/gpu, nvidia.com/mig-*, nvidia.com/gpumem, "
        "nvidia.com/gpumem-percentage and nvidia.com/gpucores, built in with other weights; narrow it, or set "
        "`defaults: false`"
    )
    assert configured('resources: {defaults: false, rules: [{pattern: "nvidia.com/*"}]}', tmp_path) == []
    assert configured("resources: {rules: [{pattern: nvidia.com/gpu, weight: 0.5}]}", tmp_path) == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ('class: "gpu-.*"', "class: gpu-training"),
        ("min_priority: 5", "min_priority: 7"),
        ("class: a, min_priority: 5", "class: a, min_priority: 7, max_priority: 9"),
    ],
)
def test_a_tier_rule_behind_one_that_takes_all_it_matches_is_refused(earlier: str, later: str, tmp_path: Path) -> None:
    text = f"tiers: {{rules: [{{tier: x, {earlier}}}, {{tier: y, {later}}}]}}"

    assert configured(text, tmp_path) == [
        "tiers.rules[1]: is never reached: tiers.rules[0] matches everything it does; move it before that rule"
    ]


def test_an_expression_that_matches_everything_takes_every_pod(tmp_path: Path) -> None:
    (problem,) = configured('tiers: {rules: [{tier: x, class: ".*"}, {tier: y, min_priority: 5}]}', tmp_path)

    assert problem == "tiers.rules[0]: matches every pod, so no later rule is reached; move it to the end"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("class: gpu-training", 'class: "gpu-.*"'),
        ("min_priority: 7", "min_priority: 5"),
        ("class: a, min_priority: 5", "class: a"),
        ("class: a", "class: b"),
    ],
)
def test_a_narrower_tier_rule_comes_first(earlier: str, later: str, tmp_path: Path) -> None:
    assert configured(f"tiers: {{rules: [{{tier: x, {earlier}}}, {{tier: y, {later}}}]}}", tmp_path) == []


def test_a_tenant_rule_behind_one_that_takes_all_it_matches_is_refused(tmp_path: Path) -> None:
    text = 'tenants: {rules: [{from: pod-label, key: team}, {from: pod-label, key: team, matches: "cc-.*"}]}'

    assert configured(text, tmp_path) == [
        "tenants.rules[1]: is never reached: tenants.rules[0] matches everything it does; move it before that rule"
    ]


def test_a_first_price_rule_that_shadows_all_others_is_refused(tmp_path: Path) -> None:
    text = """
rules:
  - {id: all, match: {gpu_model: "*"}, price: 2, effective_from: always}
  - {id: h100, match: {instance_type: "p5*"}, price: 5, effective_from: always}
"""

    assert priced(text, tmp_path) == [
        "rules[1]: is never reached: rules[0] matches everything it does; move it before that rule"
    ]


def test_price_rules_that_together_shadow_another_are_named(tmp_path: Path) -> None:
    text = """
rules:
  - {id: spot, match: {default: true}, purchase: spot, price: 1, effective_from: always}
  - {id: rest, match: {default: true}, purchase: [on-demand, reserved], price: 2, effective_from: always}
  - {id: h100, match: {gpu_model: "H100"}, price: 5, effective_from: always}
"""

    (problem,) = priced(text, tmp_path)
    assert problem.startswith("rules[2]: is never reached: rules[")
    assert "rules[0]" in problem
    assert "rules[1]" in problem


@pytest.mark.parametrize(
    ("match", "problem"),
    [
        (
            'gpu_model: "H100 80GB"',
            (
                "rules[0].match.gpu_model: 'H100 80GB' matches no label: label values cannot contain ' '; "
                "use the value of the label"
            ),
        ),
        (
            'labels: {"a b": x}',
            "rules[0].match.labels[\"a b\"]: 'a b' is not a label key; use one such as team or example.com/team",
        ),
        (
            'labels: {team: "x/y"}',
            (
                "rules[0].match.labels.team: 'x/y' matches no label: label values cannot contain '/'; "
                "use the value of the label"
            ),
        ),
    ],
)
def test_a_price_rule_that_no_label_can_match_is_refused(match: str, problem: str, tmp_path: Path) -> None:
    assert priced(f"rules: [{{match: {{{match}}}, price: 1, effective_from: always}}]", tmp_path) == [problem]


@pytest.mark.parametrize("key", ["my team", "a/b/c", "/team", "team/", "-team", "Example.com/team", "x" * 64, "tëam"])
def test_keys_that_no_label_has_are_refused(key: str, tmp_path: Path) -> None:
    said = f"{key!r} is not a label key; use one such as team or example.com/team"

    assert configured(f'tenants: {{rules: [{{from: pod-label, key: "{key}"}}]}}', tmp_path) == [
        f"tenants.rules[0].key: {said}"
    ]
    assert configured(f'pools: {{labels: ["{key}"]}}', tmp_path) == [f"pools.labels[0]: {said}"]


@pytest.mark.parametrize("name", ["other", "unknown"])
def test_a_tier_is_not_named_like_what_is_none(name: str, tmp_path: Path) -> None:
    (problem,) = configured(f"tiers: {{rules: [{{tier: {name}, class: a}}]}}", tmp_path)

    assert problem.startswith(f"tiers.rules[0].tier: {name!r} is reserved for ")
    assert configured(f"tiers: {{known: {name}}}", tmp_path)[0].startswith(f"tiers.known: {name!r} is reserved for ")


def test_a_tenant_is_not_named_like_those_past_the_limit(tmp_path: Path) -> None:
    (problem,) = configured("tenants: {rules: [{from: namespace, tenant: other}]}", tmp_path)

    assert problem == (
        "tenants.rules[0].tenant: 'other' is reserved for the tenants beyond the limit; choose another name"
    )


def test_no_web_user_is_shown_the_tenants_past_the_limit(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t" * 40)
    path = tmp_path / "web.yaml"
    path.write_text("bearer_token_files: {ann: token}\ntenants: {ann: [red, other]}\n")

    with pytest.raises(ConfigError, match=r"tenants\.ann\[1\]: 'other' is reserved for the tenants beyond") as error:
        read_web_config(path)
    assert len(error.value.problems) == 1


def test_blanks_around_a_name_are_refused(tmp_path: Path) -> None:
    (problem,) = configured('tiers: {known: ["gold "]}', tmp_path)

    assert problem == "tiers.known[0]: 'gold ' starts or ends with a space; remove it"


MULTIPLIED = (
    PRICES
    + """
tiers: {gold: 1.5, glod: 2, none: 1}
rules: [{match: {default: true}, price: 2, effective_from: always}]
"""
)


@pytest.mark.parametrize(
    ("tiers", "said"),
    [
        (
            "rules: [{tier: gold, class: a}]",
            ["tiers.glod: no tier rule has it: unknown 'glod'; use gold or none (did you mean 'gold'?)"],
        ),
        ('rules: [{tier: "{class}", class: "a.*"}]', []),
        ("known: gold", []),
    ],
)
def test_a_multiplier_of_a_tier_that_no_rule_gives_is_refused(tiers: str, said: list[str], tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"kind: Configuration\ntiers: {{{tiers}}}\n")
    (tmp_path / "prices.yaml").write_text(MULTIPLIED)

    found = check([tmp_path / "prices.yaml", tmp_path / "config.yaml"])

    assert [f"{problem.field}: {problem.text}" for problem in found] == said
    assert {problem.file for problem in found} <= {str(tmp_path / "prices.yaml")}


def test_an_expression_takes_linear_time_whatever_it_meets(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text('kind: Configuration\ntiers: {rules: [{tier: x, class: "(a+)+b"}]}\n')
    rules, began = read_rules(path), perf_counter()

    assert tier_of("a" * 5000 + "c", 0, rules) == "none"
    assert perf_counter() - began < 1  # an engine that tries all ways needs longer than the universe lasts


@pytest.mark.parametrize("expression", [r"(a)\1", "(?=a)a", "(?<!a)b", "((a{1000}){1000}){1000}"])
def test_an_expression_that_needs_more_than_linear_time_is_refused(expression: str, tmp_path: Path) -> None:
    (problem,) = configured(f"tiers: {{rules: [{{tier: x, class: '{expression}'}}]}}", tmp_path)

    assert "is not an RE2 regular expression (github.com/google/re2/wiki/Syntax): invalid " in problem
