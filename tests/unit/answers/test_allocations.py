"""The document of `/api/v1/allocations`."""

from decimal import Decimal

import pytest
from msgspec import structs

from gputally.accounting.fleet.active_pods import Active, ActivePod, read_active
from gputally.accounting.waiting.packing import JobNodes
from gputally.answers.allocations import AllocationsNow, cost_per_hour, document
from gputally.model.price import Basis, Price, Purchase
from gputally.model.unaccounted import WORDS, Unaccounted
from gputally.model.units import GPU, PICO
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK


def now() -> AllocationsNow:
    """A pod each of the tenants `a` and `b` holds GPUs, one of `b` waits."""
    replay = Replay(book=BOOK)
    replay.see(NodeForm(gpus=4), at=0)
    for name, namespace in (("x", "a"), ("y", "b")):
        replay.see(PodForm(name=name, namespace=namespace, gpus=2, node="n1", scheduled=1, started=2), at=5)
    replay.see(PodForm(name="z", namespace="b", gpus=8, created=4), at=5)
    return AllocationsNow(read_active(replay.fleet, now_us=us(10)), us(10), "EUR")


def test_pods_that_hold_gpus_have_a_price_and_those_that_wait_have_none() -> None:
    found = document(now(), {}, tenants=None)

    assert {pod.pod: (pod.state, pod.gpus, pod.cost_per_hour) for pod in found.pods} == {
        "x": ("running", 2.0, "4.42"),
        "y": ("running", 2.0, "4.42"),
        "z": ("pending", 8.0, None),
    }
    assert [node.gpus for node in found.nodes or []] == [{"allocated": 4.0}]


def test_a_user_of_some_tenants_sees_their_pods_and_no_node() -> None:
    found = document(now(), {}, tenants=frozenset({"b"}))

    assert {pod.pod for pod in found.pods} == {"y", "z"}
    assert found.nodes is None


def test_jobs_are_those_of_the_pods_that_are_shown() -> None:
    jobs = {("a", "Pod", "x"): JobNodes("", 2, 1), ("b", "Pod", "y"): JobNodes("", 3, 2)}
    active = now()
    packed = active._replace(active=structs.replace(active.active, packing=jobs))

    [everything, other] = document(packed, {}, tenants=None).jobs
    assert (everything.namespace, everything.job, everything.nodes, everything.nodes_needed) == ("a", "x", 2, 1)
    assert document(packed, {}, tenants=frozenset({"b"})).jobs == [other]
    assert document(packed, {"tenant": {"a"}}, tenants=None).jobs == [everything]


def test_all_filters_hold() -> None:
    found = document(now(), {"tenant": {"a", "b"}, "state": {"running"}, "namespace": {"b"}}, tenants=None)

    assert [pod.pod for pod in found.pods] == ["y"]


def price(per_gpu_hour: str) -> Price:
    rate = int(Decimal(per_gpu_hour) * PICO)
    return Price(
        key="k", currency="EUR", per_gpu_hour=Decimal(per_gpu_hour), rate=rate, basis=Basis.GPU, purchase=Purchase.SPOT
    )


@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        (((GPU, price("2.21")),), "2.21"),
        (((GPU // 4, price("0.1")), (2 * GPU, price("3"))), "6.025"),
        (((8 * GPU, price("12.5")),), "100"),
        (((GPU, price("2")), (GPU, None)), None),
        ((), None),
    ],
)
def test_the_cost_is_exact_or_missing(prices: tuple[tuple[int, Price | None], ...], cost: str | None) -> None:
    pod = ActivePod(
        uid="", namespace="", name="", tier="", tenant="", shown=("", "", ""), job_kind="", job="",
        quantity=GPU, since_us=0, prices=prices,
    )  # fmt: skip

    assert cost_per_hour(pod.prices) == cost


def test_an_empty_cluster_has_empty_lists() -> None:
    found = document(AllocationsNow(Active((), (), ()), us(0), ""), {}, tenants=None)

    assert (found.pods, found.nodes, found.currency) == ([], [], "")


def test_pods_that_are_not_accounted_are_counted_for_users_who_may_see_all() -> None:
    replay = Replay()
    replay.see(NodeForm(gpus=4), at=0)
    replay.see(PodForm(name="x", gpus=6, node="n1", scheduled=1, started=2, claims=("gpu",)), at=5)
    found = AllocationsNow(read_active(replay.fleet, now_us=us(10)), us(10), "")

    assert [structs.astuple(each) for each in document(found, {}, tenants=None).unaccounted or []] == [
        ("not_offered", WORDS[Unaccounted.NOT_OFFERED], 1, 2.0),
        ("claim", WORDS[Unaccounted.CLAIM], 1, None),
    ]
    assert document(found, {}, tenants=frozenset({"ml"})).unaccounted is None
    assert document(now(), {}, tenants=None).unaccounted == []


def test_values_that_no_pod_has_are_named_if_no_pod_matches() -> None:
    misspelt = {"tenant": {"visoin"}, "state": {"runing"}}

    assert document(now(), misspelt, tenants=None).unknown == ["tenant visoin", "state runing"]
    assert document(now(), {"tenant": {"a"}, "state": {"terminating"}}, tenants=None).unknown == []
