"""Shares of GPUs that KAI-Scheduler gives out: by annotation, beside pods that reserve the GPUs."""

from typing import Any

import pytest

from gputally.errors import MalformedObject
from gputally.model.kube.pods import Pod
from gputally.model.rules import KaiNames, Rules
from gputally.shares.request import effective_units, holds_gpu, limited
from gputally.shares.schemes import quantities_on
from tests.core.manifests import Json, as_pod

GPU = "nvidia.com/gpu"
NODE = (("nvidia.com/gpu.memory", "40960"),)


def pod(
    annotations: dict[str, str],
    *,
    scheduler: str = "kai-scheduler",
    namespace: str = "ml",
    labels: dict[str, str] | None = None,
    gpus: int = 0,
) -> Pod:
    container: Json = {"name": "c", "resources": {"limits": {GPU: str(gpus)} if gpus else {"cpu": "1"}}}
    spec: dict[str, Any] = {"schedulerName": scheduler, "containers": [container, {"name": "side"}]}
    meta = {"uid": "u", "namespace": namespace, "annotations": annotations, "labels": labels or {}}
    return as_pod({"metadata": meta, "spec": spec})


def share(annotations: dict[str, str], node: tuple[tuple[str, str], ...] = NODE) -> int:
    units = effective_units(pod(annotations), Rules())
    return dict(quantities_on(units, node, Rules())).get(GPU, 0)


@pytest.mark.parametrize(
    ("fraction", "expected"), [("0.5", 500_000), (".25", 250_000), ("0.000001", 1), ("0.3", 300_000)]
)
def test_a_pod_has_the_fraction_that_it_asks_for(fraction: str, expected: int) -> None:
    assert share({"gpu-fraction": fraction}) == expected


def test_a_pod_has_what_its_memory_is_of_the_nodes_gpus() -> None:
    assert share({"gpu-memory": "10240"}) == 250_000
    assert share({"gpu-memory": "99999999"}) == 1_000_000


def test_where_nobody_knows_the_memory_of_a_gpu_a_pod_has_it_whole() -> None:
    assert share({"gpu-memory": "10240"}, node=()) == 1_000_000


def test_both_are_of_each_device() -> None:
    assert share({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "3"}) == 1_500_000
    assert share({"gpu-memory": "10240", "gpu-fraction-num-devices": "2"}) == 500_000


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu-fraction": "1.5"},
        {"gpu-fraction": "half"},
        {"gpu-fraction": "-0.5"},
        {"gpu-memory": "10Gi"},
        {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "many"},
    ],
)
def test_what_kai_refuses_is_a_malformed_pod(annotations: dict[str, str]) -> None:
    with pytest.raises(MalformedObject, match="gpu-"):
        effective_units(pod(annotations), Rules())


def test_a_pod_that_reserves_a_gpu_has_nothing() -> None:
    reserving: dict[str, Any] = {"namespace": "kai-resource-reservation", "scheduler": "kai-scheduler", "gpus": 1}

    assert effective_units(pod({}, labels={"runai-gpu-group": "x"}, **reserving), Rules()) == ()
    assert effective_units(pod({}, **reserving), Rules()) == ((GPU, 1),)
    assert effective_units(pod({}, labels={"runai-gpu-group": "x"}, gpus=1), Rules()) == ((GPU, 1),)


def test_who_asks_for_whole_gpus_has_them_whatever_its_annotations_say() -> None:
    units = effective_units(pod({"gpu-fraction": "0.1"}, gpus=2), Rules())

    assert quantities_on(units, NODE, Rules()) == ((GPU, 2_000_000),)


def test_annotations_count_for_pods_of_the_configured_scheduler() -> None:
    ours = pod({"gpu-fraction": "0.5"}, scheduler="kai-2")

    assert effective_units(ours, Rules()) == ()
    assert not holds_gpu(ours, Rules())
    assert dict(effective_units(ours, Rules(kai=KaiNames(scheduler="kai-2"))))[GPU] == 1
    assert holds_gpu(ours, Rules(kai=KaiNames(scheduler="kai-2")))


def test_a_pod_without_annotations_asks_for_nothing() -> None:
    assert effective_units(pod({}), Rules()) == ()


def test_no_pod_has_shares_of_more_devices_than_its_node_offers() -> None:
    units = effective_units(pod({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "999999999"}), Rules())

    assert dict(limited(units, ((GPU, 8),), Rules()) or ())[GPU] == 8
    assert dict(limited(units, (), Rules()) or ())[GPU] == 0
