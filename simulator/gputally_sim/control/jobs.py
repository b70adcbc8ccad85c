"""The Job controller: runs pods to completion, counts and replaces them, and deletes finished Jobs.

Source: kubernetes pkg/controller/job (manageJob, trackJobStatusAndRemoveFinalizers, podReplacementPolicy).
"""

from functools import partial

from gputally_sim.agenda import Worklist
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.control.deployments import deletion_order
from gputally_sim.control.owners import RETRY_US, Owners, create_pods, owner_reference, release
from gputally_sim.documents import Doc, Key, controller_of, key_of, uid_of
from gputally_sim.instants import SECOND_US, rfc3339
from gputally_sim.node.pods import condition, is_active, is_ready, is_terminal, is_terminating, with_condition

TRACKING = "batch.kubernetes.io/job-tracking"
_BACKOFF_US = 10 * SECOND_US
_MAX_BACKOFF_US = 600 * SECOND_US


class Jobs:
    """The Job controller."""

    def __init__(self, registry: Registry, owners: Owners) -> None:
        self._registry = registry
        self._owners = owners
        self._not_before_us: dict[str, int] = {}
        self._jobs: Worklist[Key] = Worklist(registry.agenda, self._sync)
        registry.store.subscribe("jobs", self._observe_job)
        registry.store.subscribe("pods", self._observe_pod)

    def _observe_job(self, change: Change) -> None:
        if change.verb is Verb.DELETED:
            self._not_before_us.pop(uid_of(change.now.doc), None)
        else:
            self._jobs.add(change.key)

    def _observe_pod(self, change: Change) -> None:
        owner = controller_of(change.now.doc)
        if owner and owner["kind"] == "Job":
            self._jobs.add((change.key[0], owner["name"]))

    def _sync(self, key: Key) -> None:
        stored = self._registry.store.get("jobs", key)
        if stored is None:
            return
        job = self._count(stored.doc)
        verdict = verdict_on(job)
        pods = self._pods(job)
        if is_finished(job) or verdict:
            for pod in filter(is_active, pods):
                self._registry.delete("pods", key_of(pod))
        else:
            self._adjust(job, pods)
        self._write_status(job, verdict)

    def _pods(self, job: Doc) -> list[Doc]:
        return self._owners.owned("pods", uid_of(job))

    def _count(self, job: Doc) -> Doc:
        """Count newly ended pods; removing the tracking finalizer marks a pod as counted."""
        status = {"succeeded": 0, "failed": 0, **job.get("status", {})}
        for pod in self._pods(job):
            if TRACKING not in (pod["metadata"].get("finalizers") or ()) or not has_ended(job, pod):
                continue
            if pod["status"]["phase"] == "Succeeded":
                status["succeeded"] += 1
            elif not is_ignored(job, pod):
                status["failed"] += 1
                self._back_off(job, status["failed"])
            self._untrack(pod)
        return {**job, "status": status}

    def _untrack(self, pod: Doc) -> None:
        others = [each for each in pod["metadata"]["finalizers"] if each != TRACKING]
        self._registry.patch("pods", key_of(pod), {"metadata": {"finalizers": others or None}})

    def _back_off(self, job: Doc, failures: int) -> None:
        delay_us = min(_BACKOFF_US * 2 ** (failures - 1), _MAX_BACKOFF_US)
        self._not_before_us[uid_of(job)] = self._registry.agenda.now_us + delay_us
        self._jobs.add_after(delay_us, key_of(job))

    def _adjust(self, job: Doc, pods: list[Doc]) -> None:
        active = [pod for pod in pods if is_active(pod)]
        terminating = [pod for pod in pods if not is_terminal(pod) and is_terminating(pod)]
        occupied = len(active) + (len(terminating) if replaces_only_ended(job) else 0)
        may_create = self._registry.agenda.now_us >= self._not_before_us.get(uid_of(job), 0)
        missing = wanted(job) - occupied if may_create else 0
        if not create_pods(self._registry, job["metadata"]["namespace"], pod_of(job), missing):
            self._jobs.add_after(RETRY_US, key_of(job))
        for pod in deletion_order(active)[: max(0, len(active) - wanted(job))]:
            release(self._registry, "pods", pod)  # removes the finalizer first, so that it is not counted as a failure

    def _write_status(self, job: Doc, verdict: str) -> None:
        now_us = self._registry.agenda.now_us
        active = [pod for pod in self._pods(job) if is_active(pod)]
        status = {
            **job["status"],
            "startTime": job["status"].get("startTime", rfc3339(now_us)),
            "active": len(active),
            "ready": sum(map(is_ready, active)),
            "terminating": sum(is_terminating(pod) and not is_terminal(pod) for pod in self._pods(job)),
        }
        if verdict and not is_finished(job):
            status |= _finish(job, verdict, now_us)
            self._delete_after_ttl(job)
        self._registry.patch("jobs", key_of(job), {"status": status}, status=True)

    def _delete_after_ttl(self, job: Doc) -> None:
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is not None:
            clear = partial(self._clear, key_of(job), uid_of(job))
            self._registry.agenda.after(seconds * SECOND_US, clear)

    def _clear(self, key: Key, uid: str) -> None:
        stored = self._registry.store.get("jobs", key)
        if stored and uid_of(stored.doc) == uid:
            self._registry.delete("jobs", key)


def wanted(job: Doc) -> int:
    """The desired number of active pods."""
    spec = job["spec"]
    if spec.get("suspend"):
        return 0
    parallel: int = spec["parallelism"]
    if "completions" not in spec:
        return 0 if job["status"]["succeeded"] else parallel
    left: int = spec["completions"] - job["status"]["succeeded"]
    return min(parallel, left)


def verdict_on(job: Doc) -> str:
    """The condition to set: Complete, Failed, or "" while the Job runs."""
    spec, status = job["spec"], job["status"]
    if status["failed"] > spec["backoffLimit"]:
        return "Failed"
    if "completions" in spec:
        return "Complete" if status["succeeded"] >= spec["completions"] else ""
    return "Complete" if status["succeeded"] and not status.get("active") else ""


def is_finished(job: Doc) -> bool:
    """Whether the Job has completed or failed."""
    return any((condition(job, kind) or {}).get("status") == "True" for kind in ("Complete", "Failed"))


def replaces_only_ended(job: Doc) -> bool:
    """Whether a pod is replaced only after it ends, not when its deletion is requested."""
    default = "Failed" if job["spec"].get("podFailurePolicy") else "TerminatingOrFailed"
    return bool(job["spec"].get("podReplacementPolicy", default) == "Failed")


def has_ended(job: Doc, pod: Doc) -> bool:
    """Whether the pod can be counted now."""
    return is_terminal(pod) or (is_terminating(pod) and not replaces_only_ended(job))


def is_ignored(job: Doc, pod: Doc) -> bool:
    """Whether the Job's podFailurePolicy ignores this failure."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules", [])
    kinds = [each["type"] for rule in rules if rule["action"] == "Ignore" for each in rule.get("onPodConditions", [])]
    return any((condition(pod, kind) or {}).get("status") == "True" for kind in kinds)


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


def _finish(job: Doc, verdict: str, now_us: int) -> Doc:
    if verdict == "Failed":
        text = "Job has reached the specified backoff limit"
        reason = "BackoffLimitExceeded"
        return {"conditions": with_condition(job, now_us, verdict, "True", reason=reason, message=text)}
    return {"conditions": with_condition(job, now_us, verdict, "True"), "completionTime": rfc3339(now_us)}
