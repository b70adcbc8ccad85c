from itertools import pairwise

import pytest

from gputally.accounting.terms.job import OwnerWalks, job_of, unknown_owner
from gputally.model.kube.meta import Owner, OwnerReference
from gputally.model.observation import OwnerResolved
from gputally.model.pod_record import PodRecord


def reference(kind: str, name: str, *, uid: str = "") -> OwnerReference:
    version = "batch/v1" if kind == "Job" else "x/v1"
    return OwnerReference(kind=kind, name=name, uid=uid or name, api_version=version, controller=True)


REPLICAS = Owner("a", reference("ReplicaSet", "web-5d9"))
JOB = Owner("a", reference("Job", "train"))
CUSTOM = Owner("a", reference("Worker", "w-1"))


def seen(owner: Owner, parent: Owner | None = None) -> OwnerResolved:
    return OwnerResolved(owner=owner, parent=parent.reference if parent else None, at_us=0)


def known(*chain: Owner) -> dict[Owner, OwnerResolved]:
    """Each owned by the next, the last by nothing."""
    return {owner: seen(owner, parent) for owner, parent in zip(chain, (*chain[1:], None), strict=True)}


def pod(uid: str = "p", *, namespace: str = "a", owner: OwnerReference = CUSTOM.reference) -> PodRecord:
    return PodRecord(uid=uid, namespace=namespace, name=uid, units=(), created_us=0, owner=owner)


def test_a_pod_that_nothing_owns_is_its_own_job() -> None:
    assert job_of("a", {}, None, {}) == ("Pod", "a")
    assert unknown_owner({}, None, {}) is None


@pytest.mark.parametrize(
    ("labels", "job"),
    [
        ({"jobset.sigs.k8s.io/jobset-name": "sweep", "batch.kubernetes.io/job-name": "sweep-0"}, ("JobSet", "sweep")),
        ({"training.kubeflow.org/job-name": "bert"}, ("TrainingJob", "bert")),
        ({"ray.io/cluster": "ray"}, ("RayCluster", "ray")),
        ({"leaderworkerset.sigs.k8s.io/name": "llm"}, ("LeaderWorkerSet", "llm")),
        ({"job-name": "old"}, ("Job", "old")),
    ],
)
def test_the_label_of_the_outermost_framework_names_the_job_without_a_walk(
    labels: dict[str, str], job: tuple[str, str]
) -> None:
    assert job_of("a", labels, JOB, {}) == job
    assert unknown_owner(labels, CUSTOM, {}) is None


def test_the_pods_of_a_deployment_name_it_without_a_walk() -> None:
    labels = {"pod-template-hash": "5d9"}

    assert job_of("web-5d9-x", labels, REPLICAS, {}) == ("Deployment", "web")
    assert unknown_owner(labels, REPLICAS, {}) is None


def test_a_walk_ends_at_the_top_of_the_controllers() -> None:
    owners = known(CUSTOM, REPLICAS)

    assert job_of("a", {}, CUSTOM, owners) == ("ReplicaSet", "web-5d9")
    assert unknown_owner({}, CUSTOM, owners) is None


def test_a_walk_waits_for_the_first_owner_that_is_not_known() -> None:
    assert unknown_owner({}, CUSTOM, {}) == CUSTOM
    assert job_of("a", {}, CUSTOM, {}) == ("Worker", "w-1")
    owners = {CUSTOM: seen(CUSTOM, REPLICAS)}
    assert unknown_owner({}, CUSTOM, owners) == REPLICAS
    assert job_of("a", {}, CUSTOM, owners) == ("ReplicaSet", "web-5d9")


def test_each_run_of_a_cron_job_is_a_job_of_its_own() -> None:
    owners = known(JOB, Owner("a", reference("CronJob", "nightly")))

    assert job_of("a", {}, JOB, owners) == ("Job", "train")
    assert unknown_owner({}, JOB, {}) is None


def test_owners_that_go_in_a_circle_end_the_walk() -> None:
    first, second = (Owner("a", reference("Worker", name)) for name in ("a", "b"))
    owners = {first: seen(first, second), second: seen(second, first)}

    assert unknown_owner({}, first, owners) is None
    assert job_of("pod", {}, first, owners) == ("Worker", "b")


def test_a_walk_ends_at_the_tenth_owner_of_a_chain_that_is_longer() -> None:
    long = [Owner("a", reference("Worker", f"w-{number}")) for number in range(12)]

    assert unknown_owner({}, long[0], known(*long[:9])) is None, "of nine that are all known"
    nine = {owner: seen(owner, parent) for owner, parent in pairwise(long[:10])}
    assert unknown_owner({}, long[0], nine) is None, "the tenth names the job and is not looked up"
    assert job_of("pod", {}, long[0], nine) == ("Worker", "w-9")


def test_owners_of_pods_that_are_gone_are_forgotten() -> None:
    walks = OwnerWalks()
    for number in range(1100):
        gone = pod(f"gone-{number}", owner=reference("Worker", f"old-{number}"))
        walks.job(gone)
        walks.learn(seen(Owner("a", reference("Worker", f"old-{number}"))))
    walks.job(pod())
    assert walks.learn(seen(CUSTOM, REPLICAS)) == {"p"}

    walks.forget([pod()])

    assert walks.job(pod()) == ("ReplicaSet", "web-5d9", True)
    assert walks.wanted == {REPLICAS: {"p"}}
    assert len(walks._known) == 1


def test_an_owner_is_wanted_as_long_as_a_pod_waits_for_it() -> None:
    walks = OwnerWalks()
    walks.job(pod("p"))
    walks.job(pod("q"))
    walks.leave("p")
    assert walks.wanted == {CUSTOM: {"q"}}
    walks.leave("q")

    assert walks.wanted == {}
    assert walks.drain() == []
    assert walks.learn(seen(CUSTOM, REPLICAS)) == set()
    assert walks._known == {}, "nobody waits for it, so nothing of it is kept"
    assert walks._waits == {}


def test_what_is_wanted_is_told_once() -> None:
    walks = OwnerWalks()
    walks.job(pod("p"))
    walks.job(pod("p"))
    walks.job(pod("q"))

    assert walks.drain() == [CUSTOM]
    assert walks.drain() == []


@pytest.mark.parametrize(
    "forged",
    [
        pod("theirs", namespace="b"),
        pod("theirs", owner=reference("Forged", "w-1", uid="w-1")),
        pod("theirs", owner=reference("Worker", "forged", uid="w-1")),
    ],
)
def test_a_reference_that_borrows_the_uid_of_another_owner_names_no_job_of_others(forged: PodRecord) -> None:
    walks = OwnerWalks()
    walks.job(forged)
    walks.job(pod("ours"))
    [first, second] = walks.drain()

    walks.learn(seen(first))
    walks.learn(seen(second, REPLICAS))

    assert walks.job(pod("ours")) == ("ReplicaSet", "web-5d9", True)


def test_the_job_of_another_group_is_no_job_of_kubernetes() -> None:
    flow = Owner("a", reference("JobFlow", "nightly"))
    volcano = Owner("a", OwnerReference(kind="Job", name="v", uid="v", api_version="batch.volcano.sh/v1alpha1"))

    assert unknown_owner({}, volcano, {}) == volcano
    assert job_of("a", {}, volcano, known(volcano, flow)) == ("JobFlow", "nightly")
