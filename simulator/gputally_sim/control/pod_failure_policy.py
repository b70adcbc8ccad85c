"""What a Job makes of a failed pod: its podFailurePolicy, and when a pod counts as failed at all.

Source: kubernetes pkg/controller/job/pod_failure_policy.go and isPodFailed.
"""

from collections.abc import Iterable
from enum import StrEnum

from gputally_sim.documents import Doc
from gputally_sim.node.pods import is_terminal, is_terminating


class Action(StrEnum):
    """What a rule that matches a failed pod does; without one, the pod counts."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_JOB = "FailJob"


def replaces_only_ended(job: Doc) -> bool:
    """Whether a pod is replaced only after it ends, not when its deletion is requested."""
    default = "Failed" if job["spec"].get("podFailurePolicy") else "TerminatingOrFailed"
    return bool(job["spec"].get("podReplacementPolicy", default) == "Failed")


def has_failed(job: Doc, pod: Doc) -> bool:
    """Whether the pod has failed for the Job, which usually is as soon as its deletion is requested."""
    if is_terminal(pod):
        return bool(pod["status"]["phase"] == "Failed")
    return is_terminating(pod) and not replaces_only_ended(job)


def action_for(job: Doc, pod: Doc) -> Action:
    """The action of the first rule that matches the failed pod."""
    return _first_match(job, pod)[0]


def fatal_message(job: Doc, pods: Iterable[Doc]) -> str:
    """Why one of the failed pods makes the whole Job fail; "" if none does."""
    failed = (pod for pod in pods if has_failed(job, pod))
    matches = (_first_match(job, pod) for pod in failed)
    return next((message for action, message in matches if action is Action.FAIL_JOB), "")


def _first_match(job: Doc, pod: Doc) -> tuple[Action, str]:
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules", [])
    for index, rule in enumerate(rules):
        if matched := _matched(rule, pod):
            return Action(rule["action"]), f"{matched} matching {rule['action']} rule at index {index}"
    return Action.COUNT, ""


def _matched(rule: Doc, pod: Doc) -> str:
    """What matches, in the words of the Job controller."""
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if codes := rule.get("onExitCodes"):
        found = ((each["name"], _code(each)) for each in _failed_containers(pod, codes) if _exits_as(codes, each))
        failures = (f"Container {container} for pod {name} failed with exit code {code}" for container, code in found)
        return next(failures, "")
    patterns = [(each["type"], each.get("status", "True")) for each in rule.get("onPodConditions", [])]
    conditions = pod.get("status", {}).get("conditions") or []
    kinds = (each["type"] for each in conditions if (each["type"], each["status"]) in patterns)
    return next((f"Pod {name} has condition {kind}" for kind in kinds), "")


def _failed_containers(pod: Doc, codes: Doc) -> list[Doc]:
    status, name = pod.get("status", {}), codes.get("containerName")
    containers = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    ended = (each for each in containers if "terminated" in each.get("state", {}))
    return [each for each in ended if _code(each) and name in (None, each["name"])]


def _exits_as(codes: Doc, container: Doc) -> bool:
    return bool((_code(container) in codes["values"]) == (codes["operator"] == "In"))


def _code(container: Doc) -> int:
    code: int = container["state"]["terminated"]["exitCode"]
    return code
