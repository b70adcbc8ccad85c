"""How many pods ResourceQuotas admit."""

from typing import Any

import msgspec
import pytest

from gputally.answers.planned_pods import plain_pod
from gputally.errors import MalformedObject
from gputally.model.kube.policy import ResourceQuota, ScopeExpression
from gputally.model.needs import QuotaState
from gputally.placement.quotas import CountedPod, PodQuota, PodQuotas, counted_pod, counts, quota_of, usage_of

POD = CountedPod(class_name="batch")
GPUS = "requests.nvidia.com/gpu"


def pod(**spec: Any) -> Any:  # noqa: ANN401 - a manifest
    return plain_pod({"metadata": {"namespace": "ml"}, "spec": spec})


def quota(name: str = "q", *, hard: int = 4, used: int = 0, key: str = GPUS) -> PodQuota:
    return PodQuota(namespace="ml", name=name, hard=((key, hard),), used=((key, used),))


def test_the_smallest_of_several_quotas_admits_and_names_what_it_refuses() -> None:
    found = PodQuotas([quota("a", hard=9), quota("b", hard=4, used=1), quota("c", hard=9, key="pods")])

    assert found.admit("ml", POD, {GPUS: 2, "pods": 1}, 3) == (
        1,
        QuotaState(name="b", what=GPUS, hard=4, used=3, needed=2),
    )


def test_admitted_pods_use_up_all_quotas_that_count_them() -> None:
    found = PodQuotas([quota(hard=4)])

    assert found.admit("ml", POD, {GPUS: 1}, 3).number == 3
    assert found.admit("other", POD, {GPUS: 1}, 3).number == 3
    assert found.admit("ml", POD, {GPUS: 1}, 3).number == 1


def test_a_quota_that_is_exceeded_already_admits_nothing() -> None:
    assert PodQuotas([quota(hard=4, used=9)]).admit("ml", POD, {GPUS: 1}, 3).number == 0


def test_what_a_quota_does_not_limit_or_has_not_counted_yet_is_admitted() -> None:
    uncounted = PodQuota(namespace="ml", name="new", hard=((GPUS, 1),), used=())

    assert PodQuotas([uncounted, quota(key="requests.cpu", hard=0)]).admit("ml", POD, {GPUS: 5}, 2) == (2, None)


@pytest.mark.parametrize(
    ("scope", "operator", "values", "is_counted"),
    [
        ("PriorityClass", "In", ("batch",), True),
        ("PriorityClass", "In", ("other",), False),
        ("PriorityClass", "NotIn", ("batch",), False),
        ("PriorityClass", "Exists", None, True),
        ("PriorityClass", "DoesNotExist", None, False),
        ("NotBestEffort", "Exists", None, True),
        ("BestEffort", "Exists", None, False),
        ("Terminating", "Exists", None, False),
        ("NotTerminating", "Exists", None, True),
        ("CrossNamespacePodAffinity", "Exists", None, False),
    ],
)
def test_scopes_decide_which_pods_a_quota_counts(
    *, scope: str, operator: str, values: tuple[str, ...] | None, is_counted: bool
) -> None:
    assert counts([ScopeExpression(scope_name=scope, operator=operator, values=values)], POD) is is_counted


def test_a_pod_uses_requests_and_limits_with_those_of_its_init_containers() -> None:
    main = {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": 2}}}
    first = {"resources": {"limits": {"cpu": "3"}}}

    assert usage_of(pod(initContainers=[first], containers=[main])) == {
        "pods": 1,
        "count/pods": 1,
        "cpu": 3000,
        "requests.cpu": 3000,
        "limits.cpu": 3000,
        "memory": 2**30,
        "requests.memory": 2**30,
        "limits.memory": 2**30,
        "requests.nvidia.com/gpu": 2,
    }


def test_only_cpu_and_memory_make_a_pod_more_than_best_effort() -> None:
    gpus = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    cpu = {"resources": {"requests": {"cpu": "1"}}}

    assert counted_pod(pod(containers=[gpus])).best_effort
    assert not counted_pod(pod(containers=[gpus, cpu])).best_effort
    assert not counted_pod(pod(containers=[gpus])).terminating
    assert counted_pod(pod(containers=[gpus], activeDeadlineSeconds=60)).terminating


def read(hard: object, used: object = None) -> PodQuota:
    status = {"hard": hard, "used": used} if used else {}
    manifest = {"metadata": {"name": "q", "namespace": "ml"}, "spec": {"hard": hard}, "status": status}
    return quota_of(msgspec.convert(manifest, ResourceQuota))


def test_a_quota_is_read_in_the_units_of_requests() -> None:
    found = read({"requests.cpu": "1500m", "limits.memory": "1Ki", "persistentvolumeclaims": 3, "requests.storage": 1})

    assert dict(found.hard) == {"requests.cpu": 1500, "limits.memory": 1024}


def test_a_quota_with_an_invalid_quantity_is_rejected() -> None:
    with pytest.raises(MalformedObject, match="quota ml/q: 'x' is not a quantity"):
        read({"pods": "x"})
