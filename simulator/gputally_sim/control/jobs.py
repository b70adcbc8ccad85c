"""The Job controller: runs pods to completion, counts and replaces them, and deletes finished Jobs.

Source: kubernetes pkg/controller/job (syncJob, manageJob, trackJobStatusAndRemoveFinalizers, podReplacementPolicy).
"""

from collections import defaultdict
from functools import partial

from gputally_sim.agenda import Worklist
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.control.deployments import deletion_order
from gputally_sim.control.job_verdict import Verdict, final, interim, is_finished, success_of, verdict_on
from gputally_sim.control.owners import Owners, Retries, create_pods, owner_reference, release
from gputally_sim.control.pod_failure_policy import Action, action_for, has_failed, replaces_only_ended
from gputally_sim.documents import Doc, Key, controller_of, key_of, uid_of
from gputally_sim.instants import SECOND_US, rfc3339
from gputally_sim.node.pods import is_active, is_ready, is_terminal, is_terminating

TRACKING = "batch.kubernetes.io/job-tracking"
_BACKOFF_US = 10 * SECOND_US
_MAX_BACKOFF_US = 600 * SECOND_US


class Jobs:
    """The Job controller."""

    def __init__(self, registry: Registry, owners: Owners) -> None:
        self._registry = registry
        self._owners = owners
        self._retries = Retries()
        self._not_before_us: dict[str, int] = {}
        self._failures: defaultdict[str, int] = defaultdict(int)
        """Failed pods since the last success, ignored ones too: each doubles the pause before the next pod."""
        self._jobs: Worklist[Key] = Worklist(registry.agenda, self._sync)
        registry.store.subscribe("jobs", self._observe_job)
        registry.store.subscribe("pods", self._observe_pod)

    def _observe_job(self, change: Change) -> None:
        if change.verb is Verb.DELETED:
            self._forget_failures(uid_of(change.now.doc))
        else:
            self._jobs.add(change.key)

    def _observe_pod(self, change: Change) -> None:
        owner = controller_of(change.now.doc)
        if owner and owner["kind"] == "Job":
            self._jobs.add((change.key[0], owner["name"]))

    def _sync(self, key: Key) -> None:
        stored = self._registry.store.get("jobs", key)
        if stored is None or is_finished(stored.doc):
            return
        job, pods = stored.doc, self._pods(stored.doc)
        tracked = [(pod, is_terminal(pod) or has_failed(job, pod)) for pod in pods if is_tracked(pod)]
        ended = [pod for pod, has_ended in tracked if has_ended]
        self._back_off(job, ended)
        counted = with_counts(job, ended)
        verdict = verdict_on(counted, pods)
        if verdict:
            for pod in filter(is_active, pods):
                self._registry.delete("pods", key_of(pod))
            others = [pod for pod, has_ended in tracked if not has_ended]
            ended += others
            counted = with_counts(counted, others) if verdict.is_failure else counted
        else:
            self._adjust(counted, pods)
            verdict = success_of(counted, active=sum(map(is_active, self._pods(job))))
        self._write(counted, ended, verdict)

    def _pods(self, job: Doc) -> list[Doc]:
        return self._owners.owned("pods", uid_of(job))

    def _write(self, job: Doc, ended: list[Doc], verdict: Verdict | None) -> None:
        """Write the counts before the pods are released, and the final condition once no pod is terminating."""
        now_us = self._registry.agenda.now_us
        status = self._status(job) | (interim(job, verdict, now_us) if verdict else {})
        job = self._registry.patch("jobs", key_of(job), {"status": status}, status=True).doc
        for pod in ended:
            self._untrack(pod)
        if verdict and not any(is_terminating(pod) and not is_terminal(pod) for pod in self._pods(job)):
            self._registry.patch("jobs", key_of(job), {"status": final(job, verdict, now_us)}, status=True)
            self._forget_failures(uid_of(job))
            self._delete_after_ttl(job)

    def _untrack(self, pod: Doc) -> None:
        """Removing the tracking finalizer marks a pod as counted."""
        others = [each for each in pod["metadata"]["finalizers"] if each != TRACKING]
        self._registry.patch("pods", key_of(pod), {"metadata": {"finalizers": others or None}})

    def _back_off(self, job: Doc, ended: list[Doc]) -> None:
        uid, failed = uid_of(job), sum(has_failed(job, pod) for pod in ended)
        if failed < len(ended):
            self._forget_failures(uid)
        elif failed:
            self._failures[uid] += failed
            delay_us = min(_BACKOFF_US * 2 ** (self._failures[uid] - 1), _MAX_BACKOFF_US)
            self._not_before_us[uid] = self._registry.agenda.now_us + delay_us
            self._jobs.add_after(delay_us, key_of(job))

    def _forget_failures(self, uid: str) -> None:
        self._not_before_us.pop(uid, None)
        self._failures.pop(uid, None)

    def _adjust(self, job: Doc, pods: list[Doc]) -> None:
        active = [pod for pod in pods if is_active(pod)]
        terminating = [pod for pod in pods if not is_terminal(pod) and is_terminating(pod)]
        occupied = len(active) + (len(terminating) if replaces_only_ended(job) else 0)
        may_create = self._registry.agenda.now_us >= self._not_before_us.get(uid_of(job), 0)
        missing = wanted(job, active=len(active)) - occupied if may_create else 0
        if create_pods(self._registry, job["metadata"]["namespace"], pod_of(job), missing):
            self._retries.forget(key_of(job))
        else:
            self._jobs.add_after(self._retries.next_us(key_of(job)), key_of(job))
        for pod in deletion_order(active)[: max(0, len(active) - wanted(job, active=len(active)))]:
            release(self._registry, "pods", pod)  # removes the finalizer first, so that it is not counted as a failure

    def _status(self, job: Doc) -> Doc:
        pods = self._pods(job)
        active = [pod for pod in pods if is_active(pod)]
        return {
            **job["status"],
            "startTime": job["status"].get("startTime", rfc3339(self._registry.agenda.now_us)),
            "active": len(active),
            "ready": sum(map(is_ready, active)),
            "terminating": sum(is_terminating(pod) and not is_terminal(pod) for pod in pods),
        }

    def _delete_after_ttl(self, job: Doc) -> None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is not None:
            clear = partial(self._clear, key_of(job), uid_of(job))
            self._registry.agenda.after(seconds * SECOND_US, clear)

    def _clear(self, key: Key, uid: str) -> None:
        stored = self._registry.store.get("jobs", key)
        if stored and uid_of(stored.doc) == uid:
            self._registry.delete("jobs", key)


def is_tracked(pod: Doc) -> bool:
    """Whether the pod has not been counted yet."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def with_counts(job: Doc, ended: list[Doc]) -> Doc:
    """The Job with these pods counted, unless its podFailurePolicy ignores them."""
    status = {"succeeded": 0, "failed": 0, **job.get("status", {})}
    for pod in ended:
        if pod["status"]["phase"] == "Succeeded":
            status["succeeded"] += 1
        elif action_for(job, pod) is not Action.IGNORE:
            status["failed"] += 1
    return {**job, "status": status}


def wanted(job: Doc, *, active: int) -> int:
    """The desired number of active pods."""
    spec = job["spec"]
    if spec.get("suspend"):
        return 0
    parallel: int = spec["parallelism"]
    if "completions" not in spec:
        return active if job["status"]["succeeded"] else parallel
    left: int = spec["completions"] - job["status"]["succeeded"]
    return max(0, min(parallel, left))


def pod_of(job: Doc) -> Doc:
    """A pod from a Job's template."""
    template = job["spec"]["template"]
    meta = {
        **template.get("metadata", {}),
        "generateName": f"{job['metadata']['name']}-",
        "finalizers": [TRACKING],
        "ownerReferences": [owner_reference(job, "Job", "batch/v1")],
    }
    return {"metadata": meta, "spec": template["spec"]}
