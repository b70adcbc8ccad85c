"""How a Job ends: an interim condition once that is certain, and a final one once none of its pods is terminating.

Source: kubernetes pkg/controller/job/job_controller.go (syncJob, enactJobFinished).
"""

from collections.abc import Iterable
from typing import NamedTuple

from gputally_sim.control.pod_failure_policy import fatal_message
from gputally_sim.documents import Doc
from gputally_sim.instants import rfc3339
from gputally_sim.node.pods import condition, with_condition

_FINAL = {"SuccessCriteriaMet": "Complete", "FailureTarget": "Failed"}


class Verdict(NamedTuple):
    """The interim condition that makes a Job end."""

    kind: str
    reason: str
    message: str

    @property
    def is_failure(self) -> bool:
        """Whether the Job has failed."""
        return self.kind == "FailureTarget"


def verdict_on(job: Doc, pods: Iterable[Doc]) -> Verdict | None:
    """The verdict that was written before, or that the counts or a failed pod call for; None while the Job runs."""
    for kind in _FINAL:
        if (found := condition(job, kind)) and found["status"] == "True":
            return Verdict(kind, found.get("reason", ""), found.get("message", ""))
    if fatal := fatal_message(job, pods):
        return Verdict("FailureTarget", "PodFailurePolicy", fatal)
    if job["status"]["failed"] > job["spec"]["backoffLimit"]:
        return Verdict("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    return None


def success_of(job: Doc, *, active: int) -> Verdict | None:
    """The verdict on a Job with enough successes and no active pod."""
    wanted = job["spec"].get("completions", 1)
    if active or job["status"]["succeeded"] < wanted:
        return None
    return Verdict("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")


def is_finished(job: Doc) -> bool:
    """Whether the Job has completed or failed."""
    return any((condition(job, kind) or {}).get("status") == "True" for kind in _FINAL.values())


def interim(job: Doc, verdict: Verdict, now_us: int) -> Doc:
    """The status with the interim condition."""
    return {"conditions": _conditions(job, verdict, verdict.kind, now_us)}


def final(job: Doc, verdict: Verdict, now_us: int) -> Doc:
    """The status with the final condition."""
    ended = {} if verdict.is_failure else {"completionTime": rfc3339(now_us)}
    return {"conditions": _conditions(job, verdict, _FINAL[verdict.kind], now_us), **ended}


def _conditions(job: Doc, verdict: Verdict, kind: str, now_us: int) -> list[Doc]:
    return with_condition(job, now_us, kind, "True", reason=verdict.reason, message=verdict.message)
