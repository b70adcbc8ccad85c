"""GPU quotas by tier and tenant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.errors import MalformedObject
from gputally.model.kube.kinds import Kind
from gputally.model.kube.policy import ResourceQuota
from gputally.model.rules import Rules, TenantRule, TenantSource
from gputally.model.units import GPU
from tests.core.manifests import GPU_NAME, Json
from tests.core.policies import priority_class, quota
from tests.core.replay import Replay

KIND = Kind.QUOTAS
Found = dict[tuple[str, str], tuple[float, float | None]]


def found(replay: Replay, at: float = 100) -> Found:
    """Hard and used GPUs by tier and tenant."""
    quotas = replay.scrape(at=at).quotas
    return {key: (use.hard / GPU, None if use.used is None else use.used / GPU) for key, use in quotas.items()}


def observed(*quotas: ResourceQuota) -> Replay:
    replay = Replay()
    for name, value in (("train", 1000), ("serve", 800)):
        replay.see_object(Kind.PRIORITY_CLASSES, priority_class(name, value), at=2)
    replay.relist_objects(KIND, *quotas, at=5)
    return replay


def test_a_quota_of_one_class_is_that_of_its_tier() -> None:
    assert found(observed(quota("a", {GPU_NAME: "6"}, used={GPU_NAME: "2"}, classes=("train",)))) == {
        ("train", "ml"): (6, 2)
    }


@pytest.mark.parametrize(
    ("classes", "operator", "tier"),
    [
        ((), "In", "any"),
        (("train", "serve"), "In", "any"),
        (("train",), "NotIn", "any"),
        (("train", "serve"), "NotIn", "none"),
        ((), "Exists", "any"),
        ((), "DoesNotExist", "none"),
        (("not-created-yet",), "In", "not-created-yet"),
    ],
)
def test_a_quota_of_several_tiers_is_any(classes: tuple[str, ...], operator: str, tier: str) -> None:
    replay = observed(quota("a", {GPU_NAME: 4}, used={GPU_NAME: 0}, classes=classes, operator=operator))

    assert found(replay) == {(tier, "ml"): (4, 0)}


def test_of_several_quotas_for_the_same_pods_the_smallest_one_counts() -> None:
    replay = observed(
        quota("large", {GPU_NAME: 9}, used={GPU_NAME: 3}), quota("small", {GPU_NAME: 4}, used={GPU_NAME: 3})
    )

    assert found(replay) == {("any", "ml"): (4, 3)}


def test_quotas_of_several_namespaces_of_a_tenant_add_up_and_follow_its_labels() -> None:
    replay = Replay(rules=Rules(tenants=(TenantRule(source=TenantSource.NAMESPACE_LABEL, key="team"),)))
    for name in ("ml", "web"):
        replay.see_namespace(namespace(name, "red"), at=2)
    quotas = [quota("a", {GPU_NAME: 4}, namespace=name, used={GPU_NAME: 1}) for name in ("ml", "web")]
    replay.relist_objects(KIND, *quotas, at=5)
    assert found(replay, 10) == {("any", "red"): (8, 2)}

    replay.see_namespace(namespace("web", "blue"), at=20)
    assert found(replay, 30) == {("any", "red"): (4, 1), ("any", "blue"): (4, 1)}


def namespace(name: str, team: str) -> Json:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": {"team": team}}}


def test_mig_devices_and_whole_gpus_add_up() -> None:
    replay = observed(
        quota("a", {GPU_NAME: 4, "nvidia.com/mig-1g.10gb": 7}, used={GPU_NAME: 1, "nvidia.com/mig-1g.10gb": 0}),
    )

    [(hard, used)] = found(replay).values()
    assert (round(hard, 3), used) == (5, 1)


def test_use_that_is_not_counted_yet_is_unknown_and_never_0() -> None:
    assert found(observed(quota("a", {GPU_NAME: 4}))) == {("any", "ml"): (4, None)}


def test_other_resources_are_no_gpus() -> None:
    assert found(observed(quota("a", {"cpu": "100m", "memory": "1Gi"}))) == {}


def test_a_quota_follows_its_changes_and_its_end() -> None:
    replay = observed(quota("a", {GPU_NAME: 4}, used={GPU_NAME: 0}))
    replay.see_object(KIND, quota("a", {GPU_NAME: 4}, used={GPU_NAME: 3}), at=20)
    assert found(replay, 30) == {("any", "ml"): (4, 3)}

    replay.see_object(KIND, quota("a", {"cpu": 4}), at=40)
    assert found(replay, 50) == {}


def test_a_deleted_quota_is_not_exported() -> None:
    replay = observed(quota("a", {GPU_NAME: 4}), quota("b", {GPU_NAME: 9}))
    replay.lose_object(KIND, quota("a", {GPU_NAME: 4}), at=20)
    assert found(replay, 30) == {("any", "ml"): (9, None)}

    replay.relist_objects(KIND, at=40)
    assert found(replay, 50) == {}


def test_a_class_that_is_created_later_may_make_it_a_quota_of_several_tiers() -> None:
    replay = observed(quota("a", {GPU_NAME: 4}, classes=("train", "serve"), operator="NotIn"))
    assert found(replay, 30) == {("none", "ml"): (4, None)}

    replay.see_object(Kind.PRIORITY_CLASSES, priority_class("batch", 400), at=40)
    assert found(replay, 50) == {("any", "ml"): (4, None)}


def test_the_largest_amounts_are_bounded() -> None:
    assert found(observed(quota("a", {GPU_NAME: str(2**63)}))) == {("any", "ml"): (10**9, None)}


def test_an_amount_that_the_api_server_would_refuse_is_malformed_and_changes_nothing() -> None:
    replay = observed(quota("a", {GPU_NAME: 4}))

    with pytest.raises(MalformedObject, match=r"quota ml/a: '1.5' is not a whole number"):
        replay.see_object(KIND, quota("a", {GPU_NAME: "1.5"}), at=20)
    assert found(replay, 30) == {("any", "ml"): (4, None)}


NAMES = st.sampled_from(("a", "b", "c"))
STEPS = st.lists(st.tuples(NAMES, st.sampled_from(("ml", "web")), st.integers(0, 9), st.booleans()), max_size=20)


@given(STEPS)
def test_what_is_kept_step_by_step_equals_what_a_list_of_the_same_quotas_gives(
    steps: list[tuple[str, str, int, bool]],
) -> None:
    kept, known = Replay(), dict[tuple[str, str], ResourceQuota]()
    for at, (name, namespace, hard, is_gone) in enumerate(steps, start=10):
        each = quota(name, {GPU_NAME: hard}, namespace=namespace, used={GPU_NAME: 0})
        if is_gone and (name, namespace) in known:
            kept.lose_object(KIND, known.pop((name, namespace)), at=at)
        else:
            known[name, namespace] = each
            kept.see_object(KIND, each, at=at)
        kept.fleet.policy.quotas.read()
    anew = Replay()
    anew.relist_objects(KIND, *known.values(), at=50)

    assert found(kept) == found(anew)
