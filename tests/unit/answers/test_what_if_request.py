"""Parameters of `/api/v1/what-if`, as a pod."""

import pytest

from gputally.answers.parameters import InvalidRequest
from gputally.answers.planned_pods import planned_by_parameters
from gputally.model.needs import Needs
from gputally.placement.needs import needs_of
from tests.unit.answers.pending_world import H100, RULES, node, world

NOW = world([node("g1"), node("g2", model="NVIDIA-A100-SXM4-80GB"), node("g3", model=f"{H100}-NVL")], [])


def needs(**query: str) -> tuple[Needs, int]:
    given = {name.replace("class_", "class"): [value] for name, value in query.items()}
    [planned] = planned_by_parameters(given, NOW.room)
    return needs_of(planned.pod, RULES), planned.number


def test_the_parameters_are_the_request_of_a_pod() -> None:
    found, count = needs(gpus="8", cpu="500m", memory="1Gi", namespace="lab", count="3")

    assert dict(found.amounts) == {"nvidia.com/gpu": 8, "cpu": 500, "memory": 1 << 30, "pods": 1}
    assert (found.namespace, count) == ("lab", 3)


def test_a_model_is_every_one_that_contains_it() -> None:
    found, _ = needs(gpus="1", model="h100")

    assert found.node_terms
    [requirement] = found.node_terms[0].match_expressions or ()
    assert (requirement.key, requirement.values) == ("nvidia.com/gpu.product", (H100, f"{H100}-NVL"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({}, "gpus is missing; name the GPUs of a pod, such as gpus=8"),
        ({"gpus": "0"}, "gpus '0' is not valid; use a number from 1 to 10000"),
        ({"gpus": "10001"}, "gpus '10001' is not valid; use a number up to 10000"),
        ({"gpus": "1", "count": "1001"}, "count '1001' is not valid; use a number up to 1000"),
        ({"gpus": "1", "count": "0"}, "count '0' is not valid; use a number from 1 to 1000"),
        ({"gpus": "1", "cpu": "many"}, "cpu 'many' is not a quantity; use one such as 4"),
        ({"gpus": "1", "memory": "9" * 30}, f"memory '{'9' * 30}' is not a quantity; use one such as 32Gi"),
        ({"gpus": "1", "memory": "64K"}, "memory '64K' is not a quantity; use one such as 32Gi"),
        ({"gpus": "1", "memory": "1x9"}, "memory '1x9' is not a quantity; use one such as 32Gi"),
        (
            {"gpus": "1", "class_": "A/B"},
            "class 'A/B' is not a name in Kubernetes; use lower-case letters, digits, - and .",
        ),
        (
            {"gpus": "1", "model": "B200"},
            f"no node has a GPU model like 'B200'; there are NVIDIA-A100-SXM4-80GB, {H100}, {H100}-NVL",
        ),
        ({"gpus": "1", "gpu": "1"}, "unknown parameter gpu; use gpus, model, class, cpu, memory, namespace, count"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(query: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        needs(**query)

    assert str(error.value) == message
