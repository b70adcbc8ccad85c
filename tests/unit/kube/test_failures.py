"""What refusals mean."""

import pytest

from gputally.errors import ApiForbidden, ApiUnreachable, VersionExpired
from gputally.kube.failures import Failure, RequestFailed, RequestRefused, error_of, remedy
from gputally.model.kube.meta import Status


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/api/v1/nodes", "grant list,watch on nodes in API group ''"),
        ("/api/v1/namespaces", "grant list,watch on namespaces in API group ''"),
        ("/api/v1/namespaces/ml", "grant get on namespaces in API group ''"),
        ("/api/v1/namespaces/ml/pods", "grant list,watch on pods in API group ''"),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            "grant list,watch on priorityclasses in API group 'scheduling.k8s.io'",
        ),
        ("/apis/batch/v1/namespaces/ml/jobs/train", "grant get on jobs in API group 'batch'"),
        ("/version", "grant get on the non-resource URL '/version'"),
    ],
)
def test_the_remedy_names_verbs_resource_and_group(path: str, rule: str) -> None:
    assert remedy(path) == rule


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (410, VersionExpired),
        (403, ApiForbidden),
        (401, ApiForbidden),
        (429, ApiUnreachable),
        (500, ApiUnreachable),
        (503, ApiUnreachable),
        (404, RequestRefused),
        (422, RequestRefused),
    ],
)
def test_a_status_becomes_the_error_its_reader_can_act_on(code: int, error: type[Exception]) -> None:
    assert isinstance(error_of(Status(code=code), "https://host", "/api/v1/pods"), error)


def test_the_longer_of_two_requested_pauses_counts() -> None:
    error = error_of(Status(code=429, details={"retryAfterSeconds": 3}), "", "/x", retry_after_seconds=1)

    assert isinstance(error, RequestFailed)
    assert (error.failure, error.retry_after_seconds) == (Failure.THROTTLED, 3)
