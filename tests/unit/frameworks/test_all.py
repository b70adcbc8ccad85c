"""The table of frameworks: which of several decides."""

import pytest

from gputally.frameworks.all import FRAMEWORKS, GROUPS, JOB_LABELS, queue_of
from gputally.frameworks.groups import declaring_group, stated_gang
from gputally.kube.watched import ON_REQUEST
from gputally.model.kube.kinds import Kind
from gputally.model.kube.pods import PodAnnotations

KUEUE = PodAnnotations(kueue_group_size="4")
VOLCANO = PodAnnotations(kube_group="v", volcano_group_size="3")
LABELS = {"scheduling.x-k8s.io/pod-group": "c", "pod-group.scheduling.sigs.k8s.io/min-available": "2"}


def test_the_job_is_that_of_the_outermost_framework() -> None:
    assert [each.kind for each in JOB_LABELS] == [
        "JobSet",
        "LeaderWorkerSet",
        "TrainingJob",
        "RayCluster",
        "Workflow",
        "PipelineRun",
        "InferenceService",
        "VolcanoJob",
        "Job",
        "Job",
    ]


def test_gangs_come_before_other_groups() -> None:
    assert [each.kind for each in GROUPS] == [
        "LeaderWorkerSet",
        "JobSet",
        "TrainingJob",
        "VolcanoJob",
        "RayReplica",
        "KueuePodGroup",
        "RayCluster",
        "Job",
    ]


def test_each_group_and_each_job_has_labels_of_its_own() -> None:
    assert len({each.key for each in JOB_LABELS}) == len(JOB_LABELS)
    assert len({each.keys for each in GROUPS}) == len(GROUPS)


@pytest.mark.parametrize(
    ("labels", "annotations", "stated"),
    [
        ({}, None, ("", 0)),
        ({}, PodAnnotations(), ("", 0)),
        ({}, PodAnnotations(leader_worker_set_size="5", kueue_group_size="4"), ("", 5)),
        (LABELS, None, ("c", 2)),
        (LABELS, VOLCANO, ("c", 2)),
        ({}, VOLCANO, ("v", 3)),
        ({}, PodAnnotations(kube_group="v", volcano_group_size="1", kueue_group_size="4"), ("", 0)),
        ({}, PodAnnotations(kube_group="v", kueue_group_size="4"), ("", 4)),
        ({}, KUEUE, ("", 4)),
        ({}, PodAnnotations(kueue_group_size="4", kueue_group_serves="true"), ("", 1)),
    ],
)
def test_the_first_framework_that_states_a_gang_decides(
    labels: dict[str, str], annotations: PodAnnotations | None, stated: tuple[str, int]
) -> None:
    assert stated_gang(labels, annotations) == stated


def test_an_annotation_names_the_group_before_a_label() -> None:
    assert declaring_group(LABELS, VOLCANO) == "scheduling.volcano.sh/v"
    assert declaring_group(LABELS, KUEUE) == "scheduling.x-k8s.io/c"


def test_the_queue_is_that_of_kueue_first() -> None:
    labels = {"volcano.sh/queue-name": "v", "kai.scheduler/queue": "k", "kueue.x-k8s.io/queue-name": "q"}

    assert queue_of(labels) == "q"
    assert queue_of({key: labels[key] for key in ("kai.scheduler/queue", "volcano.sh/queue-name")}) == "v"
    assert not queue_of({"team": "red"})


def test_pod_groups_are_watched_in_the_best_version_first() -> None:
    watched = {each.kind: each for each in ON_REQUEST}
    volcano, core = watched[Kind.VOLCANO_GROUPS], watched[Kind.CORE_GROUPS]

    assert (volcano.path, volcano.older) == ("/apis/scheduling.volcano.sh/v1beta1/podgroups", ())
    assert core.path == "/apis/scheduling.k8s.io/v1beta1/podgroups"
    assert core.older == ("/apis/scheduling.k8s.io/v1alpha3/podgroups", "/apis/scheduling.k8s.io/v1alpha2/podgroups")


def test_each_framework_declares_something() -> None:
    assert all(each.jobs or each.groups or each.queues or each.pod_groups for each in FRAMEWORKS)
