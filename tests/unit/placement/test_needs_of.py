from typing import Any

import msgspec
import pytest

from gputally.errors import MalformedObject
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.needs import TOO_MANY, Needs
from gputally.model.rules import Rules
from gputally.placement.needs import amounts_of, needs_of, taken_of
from tests.unit.placement.cluster import GPU

Json = dict[str, Any]


def pod(*containers: Json, **spec: object) -> PlaceablePod:
    given = {"metadata": {"uid": "u", "namespace": "ml"}, "spec": {"containers": list(containers)} | spec}
    return msgspec.convert(given, PlaceablePod)


def container(more: Json | None = None, *, limits: Json | None = None, **requests: object) -> Json:
    """`more` are requests whose names are no identifiers."""
    named = {{"gpu": GPU}.get(name, name): amount for name, amount in requests.items()}
    return {"resources": {"requests": named | (more or {})} | ({"limits": limits} if limits else {})}


def needs(**spec: object) -> Needs:
    return needs_of(pod(container(gpu="1"), **spec), Rules())


def test_all_resources_of_containers_add_up_and_each_pod_counts_as_one() -> None:
    both = pod(container(cpu="500m", memory="1Gi", gpu="2"), container(cpu="1", gpu="1"))

    assert dict(amounts_of(both)) == {"cpu": 1500, "memory": 2**30, GPU: 3, "pods": 1}


def test_a_limit_without_a_request_counts_as_one() -> None:
    assert dict(amounts_of(pod(container(cpu="1", limits={"cpu": "4", "memory": "1Ki"})))) == {
        "cpu": 1000,
        "memory": 1024,
        "pods": 1,
    }


def test_init_containers_count_by_the_largest_and_sidecars_always() -> None:
    sidecar, large = container(cpu="1") | {"restartPolicy": "Always"}, container(cpu="4")

    assert dict(amounts_of(pod(container(cpu="2"), initContainers=[sidecar, large])))["cpu"] == 5000
    assert dict(amounts_of(pod(container(cpu="6"), initContainers=[sidecar, large])))["cpu"] == 7000


def test_the_overhead_comes_on_top() -> None:
    found = amounts_of(pod(container(cpu="1"), overhead={"cpu": "250m", "memory": "1Ki"}))

    assert dict(found) == {"cpu": 1250, "memory": 1024, "pods": 1}


def test_requests_of_the_pod_replace_those_of_its_containers_except_for_devices() -> None:
    whole = {"requests": {"cpu": "8", GPU: "7"}}

    found = dict(amounts_of(pod(container(cpu="1", gpu="2"), resources=whole, overhead={"cpu": "1"})))

    assert found == {"cpu": 9000, GPU: 2, "pods": 1}


def test_a_broken_quantity_is_an_error_that_names_the_pod() -> None:
    with pytest.raises(MalformedObject, match="'many' is not a quantity of cpu"):
        amounts_of(pod(container(cpu="many")))


def test_thousands_of_resources_are_limited_but_what_every_node_offers_is_kept() -> None:
    many = container({f"example.com/{number}": "1" for number in range(5000)}, memory="1Gi", cpu="1")

    found = dict(amounts_of(pod(many)))

    assert len(found) == 64
    assert {"cpu", "memory", "pods"} <= set(found)


def test_amounts_of_many_containers_never_exceed_64_bits() -> None:
    assert dict(amounts_of(pod(*[container(memory="8E")] * 9)))["memory"] == 2**63 - 1


def test_gpus_are_told_from_other_devices() -> None:
    found = needs_of(pod(container({"rdma/hca": "1"}, gpu="1")), Rules())

    assert found.gpus == (GPU,)
    assert dict(found.amounts)["rdma/hca"] == 1


def test_equal_pods_are_one_class_whatever_the_order_of_their_selectors() -> None:
    assert needs(nodeSelector={"a": "1", "b": "2"}) == needs(nodeSelector={"b": "2", "a": "1"})


def test_policy_class_gates_and_claims_are_read() -> None:
    found = needs(
        priority=7,
        priorityClassName="c",
        preemptionPolicy="Never",
        schedulerName="other",
        schedulingGates=[{"name": "g"}],
        resourceClaims=[{"name": "gpu"}],
    )

    assert (found.priority, found.class_name, found.may_preempt, found.scheduler) == (7, "c", False, "other")
    assert (found.gates, found.claims) == (("g",), ("gpu",))


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}, ("volumes",)),
        ({"volumes": [{"ephemeral": {"volumeClaimTemplate": {}}}]}, ("volumes",)),
        ({"volumes": [{"configMap": {"name": "c"}}]}, ()),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}, ("topology spread",)),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]}, ()),
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}, ("pod affinity",)),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            ("pod affinity",),
        ),
        ({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}}, ()),
        ({"tolerations": [{"key": str(number)} for number in range(300)]}, ("too many tolerations or requirements",)),
    ],
)
def test_what_only_the_scheduler_can_judge_is_named(spec: Json, named: tuple[str, ...]) -> None:
    assert needs(**spec).unmodelled == named


def test_a_host_port_is_not_modelled() -> None:
    found = needs_of(pod(container(gpu="1") | {"ports": [{"containerPort": 1, "hostPort": 80}]}), Rules())

    assert found.unmodelled == ("host ports",)


def test_shares_of_gpus_are_left_to_their_scheduler() -> None:
    found = needs_of(pod(container({"nvidia.com/gpumem": "1000"}, gpu="1")), Rules())

    assert found.unmodelled == ("shares of GPUs",)
    assert dict(found.amounts) == {GPU: 1, "pods": 1}


def test_what_a_pod_takes_has_its_priority_and_start() -> None:
    given = {
        "metadata": {"uid": "u"},
        "spec": {"containers": [container(gpu="2")], "priority": 5},
        "status": {"startTime": "1970-01-01T00:00:07Z"},
    }

    found = taken_of(msgspec.convert(given, PlaceablePod), is_serving=True)

    assert (found.amounts, found.priority, found.is_serving) == (((GPU, 2), ("pods", 1)), 5, True)
    assert found.started_us == 7_000_000


def test_thousands_of_equal_pods_share_their_amounts() -> None:
    first, second = taken_of(pod(container(gpu="1"))), taken_of(pod(container(gpu="1")))

    assert first.amounts is second.amounts


def test_rules_that_are_too_long_are_left_out() -> None:
    def found(*values: str) -> Needs:
        expression = {"key": "k", "operator": "In", "values": list(values)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        return needs(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})

    assert found(*("x" * 60 + str(number) for number in range(100))).node_terms
    much = found(*("x" * 60 + str(number) for number in range(200)))
    assert (much.node_terms, much.unmodelled) == (None, (TOO_MANY,))
    many = needs(nodeSelector={f"k{number}": "x" for number in range(300)})
    assert (many.node_selector, many.unmodelled) == ((), (TOO_MANY,))
