from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.totals.total import Total
from gputally.errors import MalformedObject
from gputally.model.allocation import Gap
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import OwnerReference
from gputally.model.observation import OwnerResolved, Upserted
from gputally.model.rules import Rules, TenantRule, TenantSource
from tests.core.manifests import as_pod, namespace, us
from tests.core.one_pod import BOUND, BY_LABEL, FINISHED, NODE, PENDING, RUNNING, cluster
from tests.core.replay import Replay

OF_NAMESPACE = Rules(tenants=(TenantRule(source=TenantSource.NAMESPACE_LABEL, key="team"),))


def tenants(replay: Replay, at: float) -> dict[str, Fraction]:
    """GPU-seconds by tenant."""
    found = dict[str, Fraction]()
    for labels, value in replay.gpu_seconds(at).items():
        found[labels[1]] = found.get(labels[1], Fraction(0)) + value
    return found


def test_a_tenant_counts_as_labelled_at_the_time() -> None:
    replay = cluster(BY_LABEL)
    replay.see(replace(RUNNING, labels={"team": "red"}), at=13)
    replay.see(replace(RUNNING, labels={"team": "blue"}, version=4), at=20)
    replay.see(replace(RUNNING, version=5), at=25)

    assert tenants(replay, 40) == {"red": 10, "blue": 5, "ml": 15}


def test_a_relabel_counts_after_etcd_was_restored_and_versions_went_back() -> None:
    replay = cluster(BY_LABEL)
    replay.see(replace(RUNNING, labels={"team": "red"}, version=1000), at=13)
    replay.relist(Kind.PODS, replace(RUNNING, labels={"team": "red"}, version=400), at=15, since=14)
    replay.see(replace(RUNNING, labels={"team": "blue"}, version=401), at=20)

    assert tenants(replay, 40) == {"red": 10, "blue": 20}


def test_a_preemption_counts_after_etcd_was_restored_and_versions_went_back() -> None:
    replay = cluster()
    replay.see(replace(RUNNING, version=1000), at=13)
    replay.relist(Kind.PODS, replace(RUNNING, version=400), at=15, since=14)
    replay.see(replace(RUNNING, marked=20, deleted=20, version=401), at=20)

    replay.scrape(100)
    assert replay.true(Total.PREEMPTIONS, 100) == {("gold", "unknown"): 1}


def test_a_tenant_by_namespace_changes_with_the_namespace() -> None:
    replay = Replay(rules=OF_NAMESPACE)
    replay.see(NODE, at=1)
    replay.see_namespace(namespace(labels={"team": "red"}), at=1)
    replay.see(RUNNING, at=13)
    replay.see_namespace(namespace(labels={"team": "blue"}), at=20)

    assert tenants(replay, 30) == {"red": 10, "blue": 10}


def test_what_no_rule_reads_of_a_namespace_is_not_kept() -> None:
    replay = Replay(rules=OF_NAMESPACE)
    replay.see_namespace(namespace(labels={"team": "red"}), at=1)
    namespaces = replay.fleet.pods.namespaces
    known, changes = namespaces.known_marks["ml"], namespaces.changes
    replay.see_namespace(namespace(labels={"team": "red", "note": "x"}), at=2)

    assert namespaces.known_marks["ml"] == known
    assert namespaces.changes == changes


def test_a_namespace_that_becomes_known_late_was_so_all_along() -> None:
    replay = Replay(rules=OF_NAMESPACE)
    replay.see(NODE, at=1)
    replay.see(replace(RUNNING, namespace="late"), at=13)
    assert set(tenants(replay, 20)) == {"unassigned"}

    replay.see_namespace(namespace("late", labels={"team": "red"}), at=20)

    assert set(tenants(replay, 30)) == {"red"}


def test_a_restart_does_not_forget_tenants_until_namespaces_are_known_again() -> None:
    replay = Replay(rules=OF_NAMESPACE)
    replay.see(NODE, at=1)
    replay.see_namespace(namespace("other", labels={"team": "red"}), at=1)
    replay.see(replace(RUNNING, namespace="other"), at=13)
    replay.flush()
    replay.restart()
    replay.see(replace(RUNNING, namespace="other", version=4), at=20)
    assert set(tenants(replay, 30)) == {"red"}

    replay.see_namespace(namespace("other", labels={"team": "blue"}), at=21)
    assert tenants(replay, 30) == {"red": 11, "blue": 9}


def test_what_has_ended_keeps_its_tenant() -> None:
    replay = cluster(BY_LABEL)
    replay.see(replace(FINISHED, labels={"team": "red"}), at=20)
    replay.see(replace(FINISHED, labels={"team": "blue"}, version=5), at=21)

    assert tenants(replay, 30) == {"red": 7}


def test_without_configuration_each_priority_class_is_a_tier_and_each_namespace_a_tenant() -> None:
    replay = cluster()
    replay.see(RUNNING, replace(RUNNING, name="b", tier=""), at=13)

    assert {labels[:2] for labels in replay.gpu_seconds(20)} == {("gold", "ml"), ("none", "ml")}


def test_the_job_is_known_after_the_owner_walk_and_costs_nothing_twice() -> None:
    worker = {"kind": "Worker", "name": "w", "uid": "w", "controller": True, "apiVersion": "x/v1"}
    replay = cluster()
    replay.see(replace(RUNNING, owners=(worker,)), at=13)
    [wanted] = replay.fleet.pods.walks.wanted
    assert wanted.reference.name == "w"

    trainer = OwnerReference(kind="Trainer", name="bert", uid="t", api_version="x/v1", controller=True)
    replay.apply(OwnerResolved(owner=wanted, parent=trainer, at_us=us(14)))
    replay.flush()

    record = replay.memory.revisions["uid-a"]
    assert (record.job_kind, record.job) == ("Trainer", "bert")
    assert replay.by_state(20) == {"starting": 2, "running": 8}


def test_indexes_follow_the_pod() -> None:
    pods = Replay(rules=OF_NAMESPACE)
    index = pods.fleet.pods.index
    pods.see(replace(PENDING, tier=""), at=6)
    assert (index.pending, index.without_tier, index.without_tenant) == ({"uid-a"}, {"uid-a"}, {"uid-a"})

    pods.see(replace(RUNNING, tier=""), at=13)
    assert (index.pending, index.without_tier) == (set(), {"uid-a"})

    pods.see(replace(FINISHED, tier=""), at=20)
    assert (index.without_tier, index.without_tenant) == (set(), set())


def test_a_pod_that_was_over_when_its_binding_was_told_is_kept_though_it_is_charged_nothing() -> None:
    replay = cluster()
    replay.see(PENDING, at=9)
    replay.flush()
    for form, at in ((BOUND, 11), (replace(BOUND, phase="Failed", version=9), 12)):
        told = Upserted(kind=Kind.PODS, object=as_pod(form), at_us=us(at), since_us=us(8))
        replay.fleet.observe(told)
    [record] = replay.fleet.drain().revisions.values()

    assert record.segments == ()
    assert record.gap == Gap(from_us=us(10), to_us=us(12))


def test_an_unchanged_pod_is_no_new_revision() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.flush()
    replay.see(replace(RUNNING, version=7), at=14)
    changes = replay.fleet.drain()

    assert (changes.revisions, changes.pods) == ({}, {})


def test_every_change_of_segments_is_a_higher_revision() -> None:
    replay = cluster()
    revisions = [0]
    for form, at in ((BOUND, 11), (RUNNING, 11), (RUNNING, 12), (FINISHED, 9)):
        replay.see(form, at=at)
        replay.flush()
        revisions.append(replay.memory.revisions["uid-a"].revision)

    assert revisions[0] < revisions[1] < revisions[2] == revisions[3] < revisions[4]


def test_a_uid_that_comes_back_has_higher_revisions_than_before() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    replay.lose(RUNNING, at=20)
    replay.flush()
    before = replay.memory.revisions["uid-a"].revision
    replay.restart()
    replay.see(RUNNING, at=30)

    assert replay.fleet.drain().revisions["uid-a"].revision > before


def test_time_to_schedule_is_counted_once() -> None:
    replay = cluster()
    for at in (11, 12, 13):
        replay.see(BOUND, at=at)
    replay.scrape(14)
    replay.restart()
    replay.see(BOUND, at=20)
    replay.lose(FINISHED, at=30)
    replay.scrape(31)

    assert replay.true(Total.SCHEDULED, 40) == {("gold", "5"): 1}
    assert replay.true(Total.SCHEDULING_TIME, 40) == {("gold",): 5_000_000}


def test_time_to_schedule_of_pods_bound_before_the_books_were_opened_is_not_counted() -> None:
    replay = Replay(opened=11)
    replay.see(NODE, RUNNING, at=13)

    assert replay.true(Total.SCHEDULED, 40) == {}


@pytest.mark.parametrize(("waited", "bound"), [(0, "1"), (1, "1"), (2, "2"), (86400, "86400"), (86401, "+Inf")])
def test_time_to_schedule_falls_into_the_bucket_up_to_its_bound(waited: int, bound: str) -> None:
    replay = Replay()
    at = 100_000
    replay.see(replace(BOUND, created=at - waited, scheduled=at), at=at)

    assert replay.true(Total.SCHEDULED, at) == {("gold", bound): 1}


def test_a_pod_with_a_broken_quantity_changes_nothing() -> None:
    replay = cluster()
    manifest = RUNNING.manifest()
    manifest["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "0.5"}}
    with pytest.raises(MalformedObject):
        replay.fleet.pods.seen(as_pod(manifest), at_us=us(13), since_us=us(13))

    assert replay.fleet.pods.records == {}


def test_a_grace_period_without_end_is_a_deletion_asked_for_now() -> None:
    replay = cluster()
    replay.see(RUNNING, at=13)
    endless = replace(RUNNING, deleted=30, version=4).manifest()
    endless["metadata"]["deletionGracePeriodSeconds"] = 2**62

    replay.apply(Upserted(kind=Kind.PODS, object=as_pod(endless), at_us=us(30), since_us=us(30)))

    assert replay.spans()[-1] == ("terminating", 30, None)


def test_a_namespace_re_created_for_another_team_leaves_its_pods_to_that_team() -> None:
    replay = cluster(OF_NAMESPACE)
    replay.see_namespace(namespace(labels={"team": "red"}), at=2)
    replay.fleet.pods.namespaces.gone("uid-ml")
    replay.see(RUNNING, at=13)

    replay.see_namespace(namespace(labels={"team": "blue"}), at=14)

    assert tenants(replay, 20) == {"blue": 10}


def test_a_restart_keeps_the_job_that_was_walked_to() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    replay = cluster()
    replay.see(replace(RUNNING, owners=(owner,)), at=13)
    [wanted] = replay.fleet.pods.walks.wanted
    rollout = OwnerReference(kind="Rollout", name="ro", uid="ro", api_version="argoproj.io/v1alpha1", controller=True)
    replay.apply(OwnerResolved(owner=wanted, parent=rollout, at_us=us(14)))
    replay.flush()
    replay.restart()
    replay.see(replace(RUNNING, owners=(owner,), version=9), at=20)

    [record] = replay.fleet.pods.records.values()
    assert (record.job_kind, record.job) == ("Rollout", "ro")


def test_after_a_restart_a_walk_that_had_not_come_to_the_top_goes_on() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs", "controller": True}
    replay = cluster()
    replay.see(replace(RUNNING, owners=(owner,)), at=13)
    replay.flush()
    replay.restart()
    [wanted] = replay.fleet.pods.walks.wanted
    replay.apply(OwnerResolved(owner=wanted, parent=None, at_us=us(14)))
    replay.flush()
    assert replay.fleet.pods.walks.wanted == {}

    replay.restart()
    assert replay.fleet.pods.walks.wanted == {}, "a walk that has ended is not begun again"
