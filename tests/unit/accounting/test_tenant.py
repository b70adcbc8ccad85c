from collections.abc import Mapping

from gputally.accounting.terms.tenant import relevant_labels, tenant_of
from gputally.model.rules import Rules, TenantRule, TenantSource

TEAM = TenantRule(source=TenantSource.POD_LABEL, key="team")
COST_CENTRE = TenantRule(source=TenantSource.NAMESPACE_LABEL, key="cost-centre")
OWNER = TenantRule(source=TenantSource.NAMESPACE_ANNOTATION, key="owner")


def tenant(
    *rules: TenantRule,
    namespace: str = "ml",
    pod: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> str:
    return tenant_of(
        namespace,
        pod_labels=pod or {},
        namespace_labels=labels or {},
        namespace_annotations=annotations or {},
        rules=Rules(tenants=rules),
    )


def test_without_configuration_the_namespace_is_the_tenant() -> None:
    assert tenant(*Rules().tenants, namespace="tenant-alpha") == "tenant-alpha"


def test_the_first_rule_that_finds_a_value_decides() -> None:
    everywhere = {"team": "vision", "cost-centre": "cc-7", "owner": "ada"}

    found = [tenant(rule, pod=everywhere, labels=everywhere, annotations=everywhere) for rule in (TEAM, COST_CENTRE)]
    assert found == ["vision", "cc-7"]
    assert tenant(TEAM, COST_CENTRE, OWNER, annotations=everywhere) == "ada"


def test_a_pod_without_any_value_is_unassigned() -> None:
    assert tenant(TEAM, COST_CENTRE, OWNER) == "unassigned"


def test_an_empty_value_does_not_match() -> None:
    assert tenant(TEAM, COST_CENTRE, pod={"team": ""}, labels={"cost-centre": "cc-7"}) == "cc-7"


def test_a_value_that_the_pattern_does_not_match_whole_goes_on_to_the_next_rule() -> None:
    numbered = TenantRule(source=TenantSource.POD_LABEL, key="team", pattern="[0-9]+")

    assert tenant(numbered, TEAM, pod={"team": "7b"}) == "7b"
    assert tenant(numbered, pod={"team": "7b"}) == "unassigned"


def test_a_tenant_can_be_built_from_groups_of_the_value() -> None:
    named = TenantRule(source=TenantSource.NAMESPACE, pattern="ml-(?P<team>.*)", tenant="{team} ({value}, {1})")

    assert tenant(named, namespace="ml-vision") == "vision (ml-vision, vision)"


def test_a_rule_that_would_give_an_empty_tenant_does_not_apply() -> None:
    rest = TenantRule(source=TenantSource.NAMESPACE, pattern="ml-(.*)", tenant="{1}")

    assert tenant(rest, namespace="ml-") == "unassigned"


def test_an_annotation_of_several_lines_is_a_value_like_any_other() -> None:
    assert tenant(OWNER, annotations={"owner": "ada\ngrace"}) == "ada\ngrace"


def test_only_pod_labels_that_rules_look_at_are_relevant() -> None:
    assert relevant_labels(Rules(tenants=(TEAM, COST_CENTRE, OWNER, *Rules().tenants))) == {"team"}
    assert relevant_labels(Rules()) == frozenset()
