"""The findings of the five scenarios, as they are described and corrected."""

import pytest

from gputally.posture.finding import Severity
from tests.unit.posture.postures import posture_of_file

FOUND = {
    "s1": [
        ("warning", "grace-below-save-time", "Job ml-training/llm-7b"),
        ("warning", "preempted-but-complete", "CronJob ml-training/nightly"),
        ("warning", "retries-spent-on-preemptions", "Job ml-training/llm-7b"),
        ("info", "budget-ignored-by-preemption", "PodDisruptionBudget ml-inference/ranker"),
    ],
    "s2": [
        ("error", "request-above-quota", "PyTorchJob tenant-alpha/llm-70b"),
        ("warning", "class-without-quota", "Namespace tenant-alpha"),
        ("warning", "classified-by-default", "Pod tenant-alpha/notebook-ada"),
        ("warning", "serving-below-training", "PriorityClass gpu-serving"),
        ("info", "never-at-the-bottom", "PriorityClass gpu-interactive"),
    ],
    "s3": [
        ("error", "unknown-class", "Job research/sweep"),
        ("warning", "meant-not-to-preempt", "PriorityClass scavenger"),
        ("warning", "preemption-fails-job", "Job research/sweep"),
        ("warning", "replicas-above-quota", "PyTorchJob research/gang"),
    ],
    "s4": [
        ("error", "unknown-preemption-policy", "PriorityClass urgent"),
        ("warning", "serving-below-training", "PriorityClass user-facing"),
    ],
    "s5": [
        ("warning", "meant-not-to-preempt", "PriorityClass experiment-normal"),
        ("info", "never-at-the-bottom", "PriorityClass development"),
    ],
}


@pytest.mark.parametrize("scenario", FOUND)
def test_a_scenario_has_exactly_its_findings(scenario: str) -> None:
    posture = posture_of_file(f"{scenario}.yaml")

    assert [(each.severity, each.check, str(each.object)) for each in posture.findings] == FOUND[scenario]
    assert posture.fails


@pytest.mark.parametrize("scenario", FOUND)
def test_a_corrected_scenario_is_silent(scenario: str) -> None:
    posture = posture_of_file(f"{scenario}-corrected.yaml")

    assert posture.findings == ()
    assert not posture.fails


@pytest.mark.parametrize("scenario", FOUND)
def test_every_finding_says_what_why_and_what_to_do(scenario: str) -> None:
    for each in posture_of_file(f"{scenario}.yaml").findings:
        assert each.what
        assert each.why
        assert each.remedy


def test_a_policy_that_does_not_exist_names_the_valid_ones() -> None:
    [first, _] = posture_of_file("s4.yaml").findings

    assert first.what == "preemptionPolicy PreemptHigherPriority does not exist"
    assert first.remedy == "use PreemptLowerPriority or Never; PreemptLowerPriority is the default"


def test_a_request_above_its_quota_says_both_numbers_and_the_quota() -> None:
    [first, *_] = posture_of_file("s2.yaml").findings

    assert first.what == (
        "a pod of the role Master requests 8 nvidia.com/gpu, but ResourceQuota training (gpu-training) allows 6"
    )


def test_accepted_findings_are_kept_apart() -> None:
    posture = posture_of_file("s2-corrected.yaml")

    assert [(each.check, each.object.name) for each in posture.accepted] == [
        ("serving-below-training", "gpu-serving"),
        ("never-at-the-bottom", "gpu-interactive"),
    ]


def test_findings_of_severity_info_alone_do_not_fail() -> None:
    posture = posture_of_file("s5.yaml")
    only_info = [each for each in posture.findings if each.severity is Severity.INFO]

    assert (
        type(posture)(
            **{name: getattr(posture, name) for name in posture.__struct_fields__} | {"findings": tuple(only_info)}
        ).fails
        is False
    )
