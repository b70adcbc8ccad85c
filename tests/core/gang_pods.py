"""Pods of gangs of any framework, and the Job of some of them."""

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from gputally.frameworks.core_pod_groups import CorePodGroup
from gputally.frameworks.coscheduling import CoschedulingPodGroup
from gputally.frameworks.volcano import VolcanoPodGroup
from gputally.model.kube.kinds import OPTIONAL_RESOURCES, Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.workloads import Job
from gputally.model.rules import Rules
from tests.core.manifests import Json, NodeForm, PodForm, instant
from tests.core.replay import Replay

LWS = {"leaderworkerset.sigs.k8s.io/name": "s", "leaderworkerset.sigs.k8s.io/group-index": "0"}
TRAINING = {"training.kubeflow.org/job-name": "t"}
VOLCANO = {"volcano.sh/job-name": "v"}
KUEUE = {"kueue.x-k8s.io/pod-group-name": "k"}
COSCHEDULING = {"scheduling.x-k8s.io/pod-group": "c"}
JOB = {"batch.kubernetes.io/job-name": "b", "batch.kubernetes.io/controller-uid": "job"}
JOB_SET = {"jobset.sigs.k8s.io/jobset-name": "js", "jobset.sigs.k8s.io/jobset-uid": "u"}
TASK = "volcano.sh/task-spec"
RAY = {"ray.io/cluster": "r"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "b", "uid": "job", "controller": True}


POD_GROUPS: dict[Kind, type[Object]] = {
    Kind.VOLCANO_GROUPS: VolcanoPodGroup,
    Kind.COSCHEDULING_GROUPS: CoschedulingPodGroup,
    Kind.CORE_GROUPS: CorePodGroup,
}
WATCHED = Rules(watched=OPTIONAL_RESOURCES)


def cluster(rules: Rules | None = None) -> Replay:
    replay = Replay(rules=rules or Rules())
    replay.see(NodeForm(gpus=64), at=0)
    return replay


def pod(name: str, labels: Mapping[str, str], *, created: int = 5, **annotations: str) -> PodForm:
    owners = (OWNER,) if labels is JOB else ()
    return PodForm(name=name, labels=labels, created=created, owners=owners, annotations=annotations)


def running(form: PodForm, at: int) -> PodForm:
    return replace(form, node="n1", scheduled=at - 2, started=at, version=form.version + 1)


def start(replay: Replay, form: PodForm, at: int) -> PodForm:
    replay.see(running(form, at), at=at)
    return running(form, at)


def job(
    size: int, labels: Mapping[str, str] | None = None, *, uid: str = "job", created: int = 1, **spec: object
) -> Job:
    template = {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    numbers = {"parallelism": size, "completions": size, "completionMode": "Indexed"}
    meta = {"name": "b", "namespace": "ml", "uid": uid, "labels": labels or {}, "creationTimestamp": instant(created)}
    manifest: Json = {"metadata": meta, "spec": {"template": template} | numbers | spec}
    return msgspec.convert(manifest, Job)


def group(
    kind: Kind,
    name: str,
    least: object,
    *,
    created: int = 1,
    uid: str = "",
    tasks: Mapping[str, object] | None = None,
    **meta: object,
) -> Object:
    """A PodGroup as its API declares a minimum, None for none, and Volcano also those of tasks."""
    named = {"name": name, "namespace": "ml", "uid": uid or f"uid-{name}", "creationTimestamp": instant(created)}
    spec: Json = {"minMember": least} | ({} if tasks is None else {"minTaskMember": tasks})
    if kind is Kind.CORE_GROUPS:
        spec = {"schedulingPolicy": {"basic": {}} if least is None else {"gang": {"minCount": least}}}
    return msgspec.convert({"metadata": named | meta, "spec": spec | {"queue": "q"}}, POD_GROUPS[kind])
