"""The pods that the parameters of `/api/v1/what-if` describe, and what is wrong with parameters about now."""

import pytest

from gputally.answers.parameters import InvalidRequest
from gputally.answers.planned_pods import planned_by_question
from gputally.model.needs import Needs
from gputally.model.verdicts import Reason
from gputally.placement.needs import needs_of
from gputally.questions.fits import Fits
from gputally.questions.parameter import InvalidQuestion, Question, texts_of
from gputally.questions.pending import Pending
from gputally.questions.what_if import WhatIfPods
from gputally.questions.why import Why
from gputally.web.report_requests import plainly_asked
from tests.unit.answers.pending_world import H100, RULES, node, world

NOW = world([node("g1"), node("g2", model="NVIDIA-A100-SXM4-80GB"), node("g3", model=f"{H100}-NVL")], [])


def needs(**query: str) -> tuple[Needs, int]:
    asked = plainly_asked(WhatIfPods, {name: [value] for name, value in query.items()})
    planned = planned_by_question(asked, NOW.room)
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


def test_a_model_that_no_node_has_is_named_with_those_that_there_are() -> None:
    with pytest.raises(InvalidQuestion, match=f"like 'B200'; there are NVIDIA-A100-SXM4-80GB, {H100}, {H100}-NVL"):
        needs(gpus="1", model="B200")


@pytest.mark.parametrize(
    ("kind", "query", "message"),
    [
        (WhatIfPods, {}, "gpus: is missing; say how many GPUs a pod needs, such as 8"),
        (WhatIfPods, {"gpus": ["0"]}, "gpus: '0' is not valid; use a number from 1 to 10000"),
        (WhatIfPods, {"gpus": ["10001"]}, "gpus: '10001' is not valid; use a number from 1 to 10000"),
        (WhatIfPods, {"gpus": ["9" * 400]}, f"gpus: '{'9' * 40}' is not valid; use a number from 1 to 10000"),
        (WhatIfPods, {"gpus": ["1"], "count": ["1001"]}, "count: '1001' is not valid; use a number from 1 to 1000"),
        (WhatIfPods, {"gpus": ["1"], "cpu": ["many"]}, "cpu: 'many' is not a quantity; use one such as 4"),
        (WhatIfPods, {"memory": ["9" * 30]}, f"memory: '{'9' * 30}' is not a quantity; use one such as 32Gi"),
        (WhatIfPods, {"memory": ["64K"]}, "memory: '64K' is not a quantity; use one such as 32Gi"),
        (WhatIfPods, {"memory": ["1x9"]}, "memory: '1x9' is not a quantity; use one such as 32Gi"),
        (
            WhatIfPods,
            {"class": ["A/B"]},
            "class: 'A/B' is not a name in Kubernetes; use lower-case letters, digits, - and .",
        ),
        (WhatIfPods, {"gpu": ["1"]}, "unknown parameter gpu; use gpus, model, class, cpu, memory, count, namespace"),
        (Fits, {"cpu": ["0"]}, "cpu: '0' is not valid; use more than 0"),
        (Fits, {"memory": ["lots"]}, "memory: 'lots' is not a quantity; use one such as 32Gi"),
        (Fits, {"cpu": ["1", "2"]}, "cpu is given 2 times; give it once"),
        (Fits, {"gpus": ["1"]}, "unknown parameter gpus; use model, cpu, memory"),
        (Pending, {"limit": ["1001"]}, "limit: '1001' is not valid; use a number from 0 to 1000"),
        (Pending, {"helps": ["1"]}, "helps: '1' is not valid; use true, false"),
        (Why, {}, "pod: name one pod or one job: use namespace with pod, or namespace with job"),
        (Why, {"namespace": ["ml"], "pod": ["a"], "job": ["b"]}, "pod: name one pod or one job: "),
        (Why, {"job": ["a"]}, "namespace: is missing; name that of the job"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(
    kind: type[Question], query: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(InvalidRequest) as error:
        plainly_asked(kind, query)

    assert str(error.value).startswith(message)


def test_empty_parameters_which_forms_send_are_none() -> None:
    assert plainly_asked(Pending, {"namespace": [""], "tier": ["", "high"], "helps": [""]}) == Pending(tier=("high",))


@pytest.mark.parametrize(
    "question",
    [
        Fits(cpu="500m", model="h100"),
        Pending(reason=(Reason.QUOTA, Reason.CAPACITY), tenant=("ml",), helps=True, limit=3),
        WhatIfPods(gpus=8, class_name="top"),
        Why(namespace="ml", job="train"),
    ],
)
def test_a_question_that_a_client_sends_is_the_one_that_the_server_reads(question: Question) -> None:
    assert plainly_asked(type(question), texts_of(question)) == question
