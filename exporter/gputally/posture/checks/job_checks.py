"""Checks of Jobs: what a preemption does to their retries and to their result.

Source: k8s.io/kubernetes pkg/controller/job/job_controller.go; measured on a real control plane.
"""

import re
from collections.abc import Iterator
from typing import Final

from gputally.formatting.amounts import counted
from gputally.model.kube.workloads import PodFailureRule
from gputally.posture.checks.quota_checks import workload_name
from gputally.posture.finding import Remark
from gputally.posture.gpu_workloads import GpuWorkload
from gputally.posture.objects import JobTerms, PosturePod
from gputally.posture.state import PostureState

_DISRUPTED: Final = "DisruptionTarget"
_DEFAULT_RETRIES: Final = 6
MANY_RETRIES: Final = 100
"""From this limit on, preemptions are assumed to be part of it."""
_TRAP: Final = re.compile(r"""\btrap\s+(?:'([^']*)'|"([^"]*)"|(\w+))((?:\s+\w+)+)""")
"""A handler of a shell: commands or the name of a function, and the signals."""
_SIGTERM: Final = frozenset({"TERM", "SIGTERM", "15"})
_EXITS_0: Final = re.compile(r"\bexit\s+0\b")


def retries_spent_on_preemptions(state: PostureState) -> Iterator[Remark]:
    """Jobs whose preemptions count as failures."""
    for workload in state.workloads:
        job = workload.job
        if job is None or not any(map(state.may_be_preempted, workload.templates)) or _action(job):
            continue
        retries = job.backoff_limit_per_index
        field = "backoffLimitPerIndex"
        if retries is None:
            field, retries = "backoffLimit", _DEFAULT_RETRIES if job.backoff_limit is None else job.backoff_limit
        if retries < MANY_RETRIES:
            yield Remark(
                workload_name(workload),
                f"{field} is {retries}, and no rule of podFailurePolicy ignores {_DISRUPTED}",
                f"each preemption uses a retry: after {counted(retries + 1, 'preemption')} the Job has failed, though "
                "nothing is wrong with it",
                f"add a rule with action Ignore on the pod condition {_DISRUPTED}; it needs restartPolicy: Never, and "
                "a SIGTERM handler that does not exit with 0",
            )


def preemption_fails_job(state: PostureState) -> Iterator[Remark]:
    """Jobs with a rule that ends them at the first preemption."""
    for workload in state.workloads:
        if workload.job and _action(workload.job) in ("FailJob", "FailIndex"):
            yield Remark(
                workload_name(workload),
                f"podFailurePolicy has {_action(workload.job)} on {_DISRUPTED}",
                "the first preemption ends it for good, whatever its backoffLimit",
                "use action Ignore for this condition",
            )


def preempted_but_complete(state: PostureState) -> Iterator[Remark]:
    """Jobs that wait for the end of preempted pods, whose SIGTERM handler exits with 0."""
    for workload in state.workloads:
        if workload.job and _waits_for_the_end(workload.job) and any(map(_exits_0_on_sigterm, _pods(workload))):
            yield Remark(
                workload_name(workload),
                "its command exits with 0 on SIGTERM, and the Job waits for the end of a pod before it replaces it",
                "a preempted pod then ends as Succeeded, and the Job is Complete, although the training is not",
                "exit with another code, such as 143, after the checkpoint is saved",
            )


def _action(job: JobTerms) -> str:
    """The action of the first rule for disrupted pods; "" without one."""
    rules = job.pod_failure_policy.rules if job.pod_failure_policy else ()
    return next((each.action for each in rules if _matches_disruption(each)), "")


def _matches_disruption(rule: PodFailureRule) -> bool:
    return any(each.type == _DISRUPTED and each.status == "True" for each in rule.on_pod_conditions or ())


def _waits_for_the_end(job: JobTerms) -> bool:
    """A podFailurePolicy implies podReplacementPolicy: Failed, and allows no other."""
    return job.pod_failure_policy is not None or job.pod_replacement_policy == "Failed"


def _pods(workload: GpuWorkload) -> Iterator[PosturePod]:
    return (each.pod for each in workload.templates)


def _exits_0_on_sigterm(pod: PosturePod) -> bool:
    """Whether a command sets such a handler; what programs do inside an image is not visible."""
    scripts = ("\n".join((*(each.command or ()), *(each.args or ()))) for each in pod.spec.containers)
    return any(_traps_and_exits_0(script) for script in scripts)


def _traps_and_exits_0(script: str) -> bool:
    for single, double, function, signals in _TRAP.findall(script):
        if not _SIGTERM.isdisjoint(signals.split()):
            body = re.search(rf"\b{function}\s*\(\)\s*\{{(.*?)\}}", script, re.DOTALL) if function else None
            if _EXITS_0.search(single or double or (body[1] if body else "")):
                return True
    return False
