import pytest

from gputally.accounting.job import job_of, unknown_owner
from gputally.accounting.owner_walks import OwnerWalks
from gputally.model.kube import OwnerReference
from gputally.model.observation import OwnerSeen
from gputally.model.pod import PodRecord

REPLICAS = OwnerReference(kind="ReplicaSet", name="web-5d9", uid="rs", api_version="apps/v1", controller=True)
JOB = OwnerReference(kind="Job", name="train", uid="job", controller=True)
CUSTOM = OwnerReference(kind="Worker", name="w-1", uid="worker", controller=True)


def owner(uid: str, parent: OwnerReference | None = None) -> OwnerSeen:
    return OwnerSeen(
        uid=uid,
        kind="",
        name="",
        parent_uid=parent.uid if parent else None,
        parent_kind=parent.kind if parent else "",
        parent_name=parent.name if parent else "",
        parent_api_version=parent.api_version if parent else "",
        at_us=0,
    )


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
    owners = {"worker": owner("worker", REPLICAS), "rs": owner("rs")}

    assert job_of("a", {}, CUSTOM, owners) == ("ReplicaSet", "web-5d9")
    assert unknown_owner({}, CUSTOM, owners) is None


def test_a_walk_waits_for_the_first_owner_that_is_not_known() -> None:
    assert unknown_owner({}, CUSTOM, {}) == CUSTOM
    assert job_of("a", {}, CUSTOM, {}) == ("Worker", "w-1")
    known = {"worker": owner("worker", REPLICAS)}
    asked = unknown_owner({}, CUSTOM, known)
    assert asked
    assert (asked.uid, asked.api_version) == ("rs", "apps/v1")
    assert job_of("a", {}, CUSTOM, known) == ("ReplicaSet", "web-5d9")


def test_each_run_of_a_cron_job_is_a_job_of_its_own() -> None:
    owners = {"job": owner("job", OwnerReference(kind="CronJob", name="nightly", uid="cron"))}

    assert job_of("a", {}, JOB, owners) == ("Job", "train")
    assert unknown_owner({}, JOB, {}) is None


def test_owners_that_go_in_a_circle_end_the_walk() -> None:
    first, second = (OwnerReference(kind="Worker", name=name, uid=name) for name in ("a", "b"))
    owners = {"a": owner("a", second), "b": owner("b", first)}

    assert unknown_owner({}, first, owners) is None
    assert job_of("pod", {}, first, owners) == ("Worker", "b")


def test_owners_of_pods_that_are_gone_are_forgotten() -> None:
    walks = OwnerWalks()
    kept = PodRecord(uid="p", namespace="a", name="p", units=(), created_us=0, owner=CUSTOM)
    walks.job(kept)
    for number in range(1100):
        walks.learn(owner(f"old-{number}"))
    assert walks.learn(owner("worker", REPLICAS)) == {"p"}

    walks.forget([kept])

    assert walks.job(kept) == ("ReplicaSet", "web-5d9")
    assert walks.wanted.keys() == {"rs"}
    assert len(walks._known) == 1
