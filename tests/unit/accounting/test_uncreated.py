"""Which workloads lack pods with GPUs, why, and until when."""

import msgspec
import pytest

from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Owner, OwnerReference
from gputally.model.kube.workloads import Job, Workload
from gputally.model.observation import WorkloadResolved
from gputally.model.price import PriceRange
from gputally.model.rules import Rules, TenantRule, TenantSource, TierRule
from gputally.model.units import GPU
from gputally.model.verdicts import Reason
from gputally.model.waits import UncreatedWorkload
from tests.core.manifests import GPU_NAME, us
from tests.core.policies import priority_class, quota
from tests.core.refusals import exceeded, failed_create, parallel_job, pod_template
from tests.core.replay import Replay

QUOTA = exceeded()
BY_VALUE = (TierRule(tier="high", min_priority=500), TierRule(tier="low"))
BY_TEAM = (TenantRule(source=TenantSource.NAMESPACE_LABEL, key="team"),)
EVENTS = Kind.FAILED_CREATES
ADMISSION = "admission webhook denied the request"
HOUR = 3600


def replay(*, watched: tuple[str, ...] = (EVENTS, Kind.QUOTAS)) -> Replay:
    """Jobs are listed, and the class `train` exists."""
    found = Replay(rules=Rules(watched=watched))
    found.see_object(Kind.PRIORITY_CLASSES, priority_class("train", 1000), at=2)
    found.relist_objects(Kind.JOBS, at=3)
    return found


def owner(kind: str, name: str = "web", version: str = "apps/v1") -> Owner:
    return Owner("ml", OwnerReference(kind=kind, name=name, uid=f"uid-{name}", api_version=version))


def workload(*, replicas: int | None = 2, labels: dict[str, str] | None = None, **status: int) -> Workload:
    spec = {"template": pod_template() | {"metadata": {"labels": labels or {}}}, "replicas": replicas}
    meta = {"name": "web", "namespace": "ml", "uid": "uid-web"}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Workload, strict=False)


def resolved(to: Replay, what: Owner, found: Workload | None, *, at: float = 70, is_known: bool = True) -> None:
    to.apply(WorkloadResolved(owner=what, found=found, at_us=us(at), is_known=is_known))


def lacking(of: Replay) -> list[UncreatedWorkload]:
    return of.fleet.uncreated.workloads(at_us=of.fleet.now_us).described()


def reasons(of: Replay, *, at: float = 100) -> list[tuple[str, str, int]]:
    """Name, reason and missing pods."""
    of.fleet.advance(us(at))
    return [(each.owner.reference.name, each.reason.value, each.pods) for each in lacking(of)]


def refused_job(message: str = QUOTA, *, at: int = 60) -> Replay:
    found = replay()
    found.see_object(Kind.JOBS, parallel_job(), at=50)
    found.see_object(EVENTS, failed_create(message, at=at), at=at)
    return found


def test_a_job_whose_pods_are_refused_lacks_all_of_them() -> None:
    [found] = lacking(refused_job())

    assert (found.reason, found.pods, found.whole, found.since_us) == (Reason.QUOTA_NEVER, 4, 32 * GPU, us(60))
    assert (found.tier, found.tenant, found.class_name, found.is_at_least) == ("train", "ml", "train", False)


def test_the_job_may_be_observed_after_the_event() -> None:
    found = replay()
    found.see_object(EVENTS, failed_create(ADMISSION), at=60)
    found.see_object(Kind.JOBS, parallel_job(active=1), at=61)

    assert reasons(found) == [("train", "refused", 3)]


def test_a_job_that_was_not_refused_lacks_nothing() -> None:
    found = replay()
    found.see_object(Kind.JOBS, parallel_job(), at=50)

    assert reasons(found) == []


@pytest.mark.parametrize(
    "after",
    [
        parallel_job(active=4),
        parallel_job(completions=4, succeeded=3, active=1),
        parallel_job(conditions=("Complete",)),
        parallel_job(conditions=("FailureTarget",)),
        parallel_job(suspend=True),
        parallel_job(managedBy="kueue.x-k8s.io/multikueue"),
        parallel_job(parallelism=0),
        parallel_job(gpus=0),
    ],
)
def test_a_refusal_ends_when_the_job_lacks_no_pods(after: Job) -> None:
    found = refused_job()
    assert reasons(found) == [("train", "quota_never", 4)]

    found.see_object(Kind.JOBS, after, at=70)
    found.see_object(Kind.JOBS, parallel_job(), at=71)  # it lacks pods again, and nobody has refused them

    assert reasons(found) == []


def test_a_refusal_ends_when_the_job_is_gone() -> None:
    deleted, missing = refused_job(), refused_job()
    deleted.lose_object(Kind.JOBS, parallel_job(), at=70)
    missing.relist_objects(Kind.JOBS, at=70)

    assert reasons(deleted) == reasons(missing) == []


def test_a_refusal_that_is_not_repeated_ends_with_its_event() -> None:
    found = refused_job()

    assert reasons(found, at=60 + HOUR - 10) == [("train", "quota_never", 4)]
    assert reasons(found, at=60 + HOUR + 10) == []


def test_an_event_in_another_namespace_refuses_nothing() -> None:
    found = replay()
    found.see_object(Kind.JOBS, parallel_job(), at=50)
    found.see_object(EVENTS, failed_create(QUOTA, namespace="theirs"), at=60)

    assert reasons(found) == []


def test_a_suspended_job_with_a_queue_is_queued_without_any_event() -> None:
    found = replay(watched=())
    found.see_object(Kind.JOBS, parallel_job(queue="research", suspend=True, conditions=("Suspended",)), at=60)

    [queued] = lacking(found)
    assert (queued.reason, queued.pods, queued.since_us) == (Reason.QUEUED, 4, us(50))
    assert queued.text == "Kueue, queue research"
    found.see_object(Kind.JOBS, parallel_job(queue="research", suspend=True, active=3), at=65)  # 3 are yet to stop
    assert reasons(found) == [("train", "queued", 1)]
    found.see_object(Kind.JOBS, parallel_job(queue="research", suspend=False, active=4), at=70)
    assert reasons(found) == []


def test_a_quota_that_is_watched_decides_as_it_is_now() -> None:
    found = refused_job()
    found.see_object(Kind.QUOTAS, quota("training", {GPU_NAME: "16"}, used={GPU_NAME: "12"}), at=80)
    assert reasons(found) == [("train", "quota", 4)]

    found.see_object(Kind.QUOTAS, quota("training", {GPU_NAME: "7"}, used={GPU_NAME: "0"}), at=110)
    assert reasons(found, at=120) == [("train", "quota_never", 4)]

    found.see_object(Kind.QUOTAS, quota("training", {GPU_NAME: "8"}, used={GPU_NAME: "1"}), at=130)
    assert reasons(found, at=140) == [("train", "quota", 4)]


def by_team() -> Replay:
    """Tiers by the value of the class, tenants by a label of the namespace; a quota refuses a Job."""
    found = Replay(rules=Rules(watched=(EVENTS, Kind.QUOTAS), tiers=BY_VALUE, tenants=BY_TEAM))
    found.relist_objects(Kind.JOBS, parallel_job(), at=3)
    found.see_object(Kind.QUOTAS, quota("training", {GPU_NAME: "6"}, used={GPU_NAME: "5"}), at=4)
    found.see_object(EVENTS, failed_create(QUOTA), at=60)
    found.scrape(at=61)
    return found


def test_the_tier_follows_the_class() -> None:
    found = by_team()
    assert [each.tier for each in lacking(found)] == ["low"]

    found.see_object(Kind.PRIORITY_CLASSES, priority_class("train", 1000), at=70)
    assert [each.tier for each in lacking(found)] == ["high"]


def test_the_tenant_follows_the_namespace() -> None:
    found = by_team()
    assert [each.tenant for each in lacking(found)] == ["unassigned"]

    found.see_namespace({"metadata": {"name": "ml", "uid": "uid-ml", "labels": {"team": "research"}}}, at=71)
    assert [each.tenant for each in lacking(found)] == ["research"]
    uncreated = found.scrape(at=80).uncreated
    assert uncreated
    assert uncreated.refused == {("any", "research"): 32 * GPU}


def test_a_workload_is_looked_up_when_an_event_names_it() -> None:
    found = replay()
    found.see_object(EVENTS, failed_create(ADMISSION, name="web", kind="ReplicaSet", apiVersion="apps/v1"), at=60)
    found.see_object(EVENTS, failed_create(ADMISSION, name="train"), at=60)

    assert found.fleet.uncreated.drain_wanted() == {owner("ReplicaSet")}
    assert reasons(found) == []
    resolved(found, owner("ReplicaSet"), workload(replicas=3, labels={"pod-template-hash": "5c"}))
    [web] = lacking(found)
    assert (web.reason, web.pods, web.job_kind) == (Reason.REFUSED, 3, "Deployment")


@pytest.mark.parametrize(
    ("kind", "found", "pods"),
    [
        ("ReplicaSet", workload(replicas=3), 3),
        ("StatefulSet", workload(replicas=None), 1),
        ("DaemonSet", workload(desiredNumberScheduled=5, currentNumberScheduled=2), 3),
    ],
)
def test_each_kind_lacks_what_its_status_says(kind: str, found: Workload, pods: int) -> None:
    there = replay()
    there.see_object(EVENTS, failed_create(ADMISSION, name="web", kind=kind, apiVersion="apps/v1"), at=60)
    resolved(there, owner(kind), found)

    assert reasons(there) == [("web", "refused", pods)]
    resolved(there, owner(kind), None)
    assert reasons(there) == []


def test_a_workload_that_is_complete_again_is_refused_no_longer() -> None:
    found = replay()
    found.see_object(EVENTS, failed_create(ADMISSION, name="web", kind="ReplicaSet", apiVersion="apps/v1"), at=60)
    complete = msgspec.convert(
        {
            "metadata": {"uid": "uid-web"},
            "spec": {"replicas": 2, "template": pod_template()},
            "status": {"replicas": 2},
        },
        Workload,
        strict=False,
    )
    resolved(found, owner("ReplicaSet"), workload())
    assert reasons(found) == [("web", "refused", 2)]
    resolved(found, owner("ReplicaSet"), complete)

    assert reasons(found) == []
    assert not found.fleet.uncreated.is_refused(owner("ReplicaSet"))


@pytest.mark.parametrize(("kind", "version"), [("PyTorchJob", "kubeflow.org/v1"), ("ReplicaSet", "apps/v1")])
def test_an_event_alone_counts_one_pod_of_a_gpu_quota_while_it_is_repeated(kind: str, version: str) -> None:
    found = replay()
    found.see_object(EVENTS, failed_create(QUOTA, name="web", kind=kind, apiVersion=version), at=60)
    if kind == "ReplicaSet":
        resolved(found, owner(kind), None, is_known=False)

    [alone] = lacking(found)
    assert (alone.reason, alone.pods, alone.quantity, alone.is_at_least) == (Reason.QUOTA_NEVER, 1, 8 * GPU, True)
    assert (alone.tier, alone.prices) == ("unknown", PriceRange())
    assert reasons(found, at=60 + HOUR // 2 + 10) == []


def test_an_event_alone_says_how_many_gpus_only_if_a_gpu_quota_refuses() -> None:
    found = replay()
    cpu = "exceeded quota: q, requested: cpu=8, used: cpu=0, limited: cpu=4"
    for name, message in (("a", ADMISSION), ("b", cpu)):
        found.see_object(
            EVENTS, failed_create(message, name=name, kind="PyTorchJob", apiVersion="kubeflow.org/v1"), at=60
        )
    found.see_object(EVENTS, failed_create(QUOTA, name="no-gpu-job"), at=60)  # GPU Jobs are known

    assert reasons(found) == [("a", "refused", 1), ("b", "quota_never", 1)]
    assert [each.quantity for each in lacking(found)] == [0, 0]
    now = found.scrape(100).uncreated
    assert now
    assert now.reasons == {}


def test_the_sums_follow_and_stay_as_0() -> None:
    found = refused_job()
    found.see_object(Kind.QUOTAS, quota("training", {GPU_NAME: "6"}, used={GPU_NAME: "5"}), at=65)
    before = found.scrape(at=100).uncreated
    assert before
    assert before.reasons == {("train", "quota_never"): (4, 32 * GPU)}
    assert before.refused == {("any", "ml"): 32 * GPU}

    found.see_object(Kind.JOBS, parallel_job(active=4), at=110)
    after = found.scrape(at=120).uncreated
    assert after
    assert after.reasons == {("train", "quota_never"): (0, 0)}
    assert after.refused == {("any", "ml"): 0}


def test_tiers_of_templates_are_bounded() -> None:
    found = replay()
    made_up = msgspec.structs.replace
    for number in range(100):
        each = parallel_job(f"job-{number}", queue="q", suspend=True)
        spec = made_up(each.spec.template.spec, priority_class_name=f"class-{number}")
        template_ = made_up(each.spec.template, spec=spec)
        found.see_object(Kind.JOBS, made_up(each, spec=made_up(each.spec, template=template_)), at=60)

    snapshot = found.scrape(at=100)
    assert snapshot.uncreated
    assert snapshot.uncreated.reasons == {("other", "queued"): (400, 3200 * GPU)}


def test_refused_gpus_of_quotas_are_unknown_unless_both_are_watched() -> None:
    for watched in ((), (EVENTS,), (Kind.QUOTAS,)):
        snapshot = replay(watched=watched).scrape(at=100)
        assert snapshot.uncreated
        assert snapshot.uncreated.refused is None
