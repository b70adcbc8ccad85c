"""What is compared with quotas, and by which of their scopes."""

from pathlib import Path

import pytest

from tests.unit.posture.postures import (
    HIGH_AND_LOW,
    Json,
    a_class,
    a_deployment,
    a_job,
    a_quota,
    by_class,
    found_in,
    pod_spec,
)


@pytest.mark.parametrize(
    ("scope", "is_found"),
    [
        (by_class("In", "low"), True),
        (by_class("In", "high"), False),
        (by_class("NotIn", "high"), True),
        (by_class("Exists"), True),
        (by_class("DoesNotExist"), False),
        ({"scopes": ["PriorityClass"]}, True),
        ({}, True),
        ({"scopes": ["BestEffort"]}, False),
    ],
)
def test_a_request_is_compared_with_the_quotas_that_count_its_class(
    tmp_path: Path, *, scope: Json, is_found: bool
) -> None:
    job = a_job(pod_spec(gpus=8, priorityClassName="low"))

    found = found_in(tmp_path, *HIGH_AND_LOW, a_quota(6, **scope), job)

    assert (("request-above-quota", "Job ml/train") in found) == is_found


def test_a_quota_of_another_namespace_limits_nothing(tmp_path: Path) -> None:
    job = a_job(pod_spec(gpus=8, priorityClassName="low"))

    assert found_in(tmp_path, *HIGH_AND_LOW, a_quota(6, namespace="other"), job) == []


def test_the_default_class_decides_which_quota_counts_a_pod_without_one(tmp_path: Path) -> None:
    classes = (a_class("high", 1000, globalDefault=True), a_class("low", 100))

    found = found_in(tmp_path, *classes, a_quota(6, **by_class("In", "high")), a_job(pod_spec(gpus=8)))

    assert ("request-above-quota", "Job ml/train") in found


def test_replicas_above_their_quota_are_reported(tmp_path: Path) -> None:
    found = found_in(tmp_path, *HIGH_AND_LOW, a_quota(6), a_deployment(pod_spec(priorityClassName="high"), replicas=7))

    assert found == [("replicas-above-quota", "Deployment ml/serve")]


def test_a_quota_without_scope_limits_every_class(tmp_path: Path) -> None:
    scoped = a_quota(2, **by_class("In", "high")) | {"metadata": {"name": "high", "namespace": "ml"}}

    assert found_in(tmp_path, *HIGH_AND_LOW, scoped) == [("class-without-quota", "Namespace ml")]
    assert found_in(tmp_path, *HIGH_AND_LOW, scoped, a_quota(8)) == []


def test_quantities_that_are_no_whole_numbers_are_reported(tmp_path: Path) -> None:
    job = a_job(pod_spec(gpus="500m", priorityClassName="low"))

    assert found_in(tmp_path, *HIGH_AND_LOW, a_quota("1.5"), job) == [
        ("unreadable-quantity", "Job ml/train"),
        ("unreadable-quantity", "ResourceQuota ml/gpus"),
    ]
