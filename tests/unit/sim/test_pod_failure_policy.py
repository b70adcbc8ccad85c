"""What a Job makes of failed pods."""

from typing import Any

import pytest

from gputally_sim.control.pod_failure_policy import Action, action_for, fatal_message, has_failed
from gputally_sim.documents import Doc

DISRUPTED: Doc = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def job(*rules: Doc, **spec: object) -> Doc:
    return {"spec": spec | ({"podFailurePolicy": {"rules": list(rules)}} if rules else {})}


def rule(action: str, **matches: Any) -> Doc:  # noqa: ANN401 - any JSON
    return {"action": action, **matches}


def codes(*values: int, operator: str = "In", container: str = "") -> Doc:
    named = {"containerName": container} if container else {}
    return {"onExitCodes": {"operator": operator, "values": list(values), **named}}


def pod(phase: str = "Failed", *, code: int = 143, condition: str = "DisruptionTarget", deleted: bool = False) -> Doc:
    container = {"name": "main", "state": {"terminated": {"exitCode": code}}}
    conditions = [{"type": condition, "status": "True"}]
    deletion = {"deletionTimestamp": "2026-03-02T06:00:00Z"} if deleted else {}
    status = {"phase": phase, "conditions": conditions, "containerStatuses": [container]}
    return {"metadata": {"name": "a", "namespace": "ml", **deletion}, "status": status}


@pytest.mark.parametrize(
    ("rules", "action"),
    [
        ((), Action.COUNT),
        ((rule("Ignore", **DISRUPTED),), Action.IGNORE),
        ((rule("Count", **codes(143)), rule("Ignore", **DISRUPTED)), Action.COUNT),
        ((rule("FailJob", **codes(42)), rule("Ignore", **DISRUPTED)), Action.IGNORE),
        ((rule("Ignore", **codes(143, container="other")),), Action.COUNT),
        ((rule("Ignore", **codes(143, container="main")),), Action.IGNORE),
        ((rule("FailJob", **codes(1, 2, operator="NotIn")),), Action.FAIL_JOB),
        ((rule("Ignore", onPodConditions=[{"type": "DisruptionTarget", "status": "False"}]),), Action.COUNT),
    ],
)
def test_the_first_rule_that_matches_decides(rules: tuple[Doc, ...], action: Action) -> None:
    assert action_for(job(*rules), pod()) is action


def test_an_exit_code_of_0_matches_no_rule() -> None:
    assert action_for(job(rule("FailJob", **codes(1, operator="NotIn"))), pod(code=0)) is Action.COUNT


def test_a_job_fails_with_the_rule_and_the_pod_that_matched() -> None:
    failing = job(rule("Ignore", **codes(3)), rule("FailJob", **codes(143)))

    assert fatal_message(failing, [pod(code=3), pod()]) == (
        "Container main for pod ml/a failed with exit code 143 matching FailJob rule at index 1"
    )
    assert fatal_message(failing, [pod(code=3), pod("Running")]) == ""


RUNS_AND_IS_DELETED = pod("Running", deleted=True)
WAITS: Doc = {"podReplacementPolicy": "Failed"}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, RUNS_AND_IS_DELETED),
        ({"podReplacementPolicy": "TerminatingOrFailed"}, RUNS_AND_IS_DELETED),
        ({}, pod("Failed")),
        (WAITS, pod("Failed", deleted=True)),
    ],
)
def test_a_pod_has_failed_as_soon_as_it_is_deleted(spec: Doc, found: Doc) -> None:
    assert has_failed({"spec": spec}, found)


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, pod("Running")),
        ({}, pod("Succeeded", deleted=True)),
        (WAITS, RUNS_AND_IS_DELETED),
        ({"podFailurePolicy": {"rules": [rule("Ignore", **DISRUPTED)]}}, RUNS_AND_IS_DELETED),
    ],
)
def test_a_pod_has_not_failed_before_its_end_if_the_job_waits_for_that(spec: Doc, found: Doc) -> None:
    assert not has_failed({"spec": spec}, found)
