"""Pods that end as those of Jobs do, and the naive reference for which of these Jobs ended early.

The reference reads plain documents, and the outcomes of pods in the ledger.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from gputally.accounting.facts.outcome import outcome_of
from gputally.model.pod_record import PodRecord
from tests.core.manifests import PodForm
from tests.property.node_lives import OPENED, Draw
from tests.told import Json, Told
from tests.true_ends import asked, own_end, seconds

KINDS = ("succeeded", "failed", "preempted", "preempted", "preempted", "deleted", "waiting")
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
CODE_1 = {"onExitCodes": {"operator": "In", "values": [1]}}
POLICIES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"podReplacementPolicy": "Failed"},
    {"podFailurePolicy": {"rules": [{"action": "Ignore", **DISRUPTED}]}},
    {"podFailurePolicy": {"rules": [{"action": "FailJob", **CODE_1}, {"action": "Ignore", **DISRUPTED}]}},
    {"podFailurePolicy": {"rules": [{"action": "FailJob", **DISRUPTED}]}},
)


@st.composite
def job_specs(draw: Draw) -> dict[str, Any]:
    """What decides about failures."""
    return {**draw(st.sampled_from(POLICIES)), "backoffLimit": draw(st.integers(0, 1))}


@st.composite
def pods_that_end(draw: Draw, name: str) -> list[Told]:
    """A pod succeeds, fails, is preempted or deleted, or is deleted before it is bound; then it may be gone."""
    form = PodForm(name=name, created=OPENED, tier=draw(st.sampled_from(["gold", "lead"])))
    runs = replace(form, node="n1", scheduled=OPENED, accepted=OPENED, started=OPENED)
    kind, end = draw(st.sampled_from(KINDS)), draw(st.integers(OPENED + 5, OPENED + 12))
    if kind == "waiting":
        return [
            _seen(form, at=OPENED),
            replace(_seen(replace(form, deleted=end, grace=0), at=end), event="gone"),
        ]
    code = {"succeeded": 0, "failed": 1}.get(kind, draw(st.sampled_from([143, 0, 1])))
    last = replace(runs, finished=end, exit_code=code, phase="Failed" if code else "Succeeded")
    asked = draw(st.integers(OPENED + 1, end - 3))
    if kind in ("preempted", "deleted"):
        last = replace(last, deleted=asked, marked=asked if kind == "preempted" else None)
    told = [_seen(form, at=OPENED), _seen(runs, at=OPENED), _seen(last, at=end)]
    if draw(st.booleans()):
        told.append(replace(_seen(last, at=end + draw(st.integers(0, 2))), event="gone"))
    return told


def _seen(form: PodForm, *, at: int) -> Told:
    return Told(kind="pod", event="seen", manifest=replace(form, version=at).manifest(), at=at, since=at)


@dataclass(frozen=True, kw_only=True)
class Pod:
    """How a pod ended; `asked` is when its deletion was requested, 0 if it was not."""

    outcome: str
    phase: str
    code: int | None
    asked: int


def early_outcome(job: Json, lives: Iterable[Sequence[Told]], revisions: Mapping[str, PodRecord]) -> str:
    """`completed_early` or `failed_early`, or "" for a Job that ended in any other way."""
    conditions = job["status"]["conditions"]
    pods = [pod for life in lives if (pod := _pod(life, revisions))]
    for each in conditions:
        if each["type"] == "Complete":
            return "completed_early" if _successes(job, pods) else ""
        if _is_by_preemptions(job, each, pods):
            return "failed_early"
    return ""


def _pod(life: Sequence[Told], revisions: Mapping[str, PodRecord]) -> Pod | None:
    record = revisions.get(life[0].manifest["metadata"]["uid"])
    requests = [asked(told.manifest) for told in life if "deletionTimestamp" in told.manifest["metadata"]]
    if record is None and requests and life[-1].event != "seen":  # it was never bound
        return Pod(outcome="deleted", phase="", code=None, asked=min(requests))
    if record is None or own_end(life) is None:
        return None
    phase, code = (record.result.phase, record.result.exit_code) if record.result else ("", None)
    return Pod(outcome=outcome_of(record).value, phase=phase, code=code, asked=min(requests, default=0))


def _successes(job: Json, pods: Sequence[Pod]) -> int:
    """How many preempted pods the Job counts as successes."""
    succeeded = [pod.outcome == "preempted" for pod in pods if pod.phase == "Succeeded"]
    if "podReplacementPolicy" in job["spec"] or "podFailurePolicy" in job["spec"]:
        return sum(succeeded)
    more: int = job["status"]["succeeded"] - succeeded.count(False)
    return max(0, min(sum(succeeded), more))


def _is_by_preemptions(job: Json, condition: Json, pods: Sequence[Pod]) -> bool:
    victims = [pod for pod in pods if pod.outcome == "preempted"]
    failed = [pod for pod in victims if pod.phase != "Succeeded"]
    actions = [_action(job, pod) for pod in failed]
    if condition["reason"] == "PodFailurePolicy":
        return "FailJob" in actions
    if condition["reason"] != "BackoffLimitExceeded":
        return False
    counted = len(victims) - _successes(job, pods) - actions.count("Ignore")
    since = seconds(condition["lastTransitionTime"])
    stopped = sum(pod.outcome == "deleted" and pod.phase != "Succeeded" and pod.asked >= since for pod in pods)
    failures, limit = job["status"]["failed"] - stopped, job["spec"]["backoffLimit"]
    return bool(failures > limit and failures - counted <= limit)


def _action(job: Json, victim: Pod) -> str:
    for rule in job["spec"].get("podFailurePolicy", {"rules": ()})["rules"]:
        if "onPodConditions" in rule or victim.code in rule["onExitCodes"]["values"]:
            return str(rule["action"])
    return "Count"
