"""No answer about waiting pods tells a restricted user a priority of other tenants."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from aiohttp import ClientSession

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.model.advice import PriorityChoice
from tests.unit.answers.pending_world import holds, node, waits, world
from tests.unit.web.test_pending_routes import RESTRICTED, read, served

OWN: Final = {"batch": 31_400, "eager": 31_600}
SECRET: Final = {"serving": 717_171, "research": 53_535, "never": 919_191, "unused": 828_282}
CLASSES = [
    PriorityChoice(name, value, may_preempt=name != "never") for name, value in (OWN | SECRET | {"raised": 1}).items()
]
ASKED: Final = (*OWN, *SECRET, "raised", "system-node-critical", "missing", "")


def state(*, with_room: bool = True) -> PendingNow:
    """The tenant `ml` waits for what `rivals` hold, who wait for more. Its pod `old` has a former value of a class."""
    del with_room
    pods = [
        holds("serve", 6, on="g1", tier="serving", priority=SECRET["serving"], namespace="rivals"),
        holds("study", 2, on="g1", tier="research", priority=SECRET["research"], namespace="rivals"),
        holds("own", 1, on="g2", tier="batch", priority=OWN["batch"]),
        holds("old", 1, on="g2", tier="serving", priority=99_999),
        holds("calm", 2, on="g2", tier="never", priority=SECRET["never"], namespace="rivals"),
        waits("a", 8, tier="eager", priority=OWN["eager"]),
        waits("b", 3, tier="batch", priority=OWN["batch"]),
        waits("foreign", 4, tier="serving", priority=SECRET["serving"], namespace="rivals"),
    ]
    return world([node("g1", 8), node("g2", 4)], pods, classes=CLASSES)


def scalars(found: object) -> Iterator[object]:
    """All values in an answer, those of text included, whatever their place."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield key
            yield from scalars(value)
    elif isinstance(found, list):
        for value in found:
            yield from scalars(value)
    else:
        yield found


def assert_tells_nothing(answer: object) -> None:
    for scalar in scalars(answer):
        plain = str(scalar).replace(",", "").replace("_", "").replace(" ", "")
        assert not any(str(value) in plain for value in SECRET.values()), scalar


async def every_answer(client: ClientSession) -> dict[str, Any]:
    found = {}
    for path in ("/api/v1/pending?helps=true", "/pending", "/api/v1/fits", "/api/v1/fits?model=none"):
        found[path] = await read(client, path)
    for namespace, pod in (("ml", "a"), ("ml", "b"), ("rivals", "foreign"), ("ml", "own"), ("rivals", "serve")):
        for path in ("/api/v1/why", "/pending/why"):
            found[f"{path} {pod}"] = await read(client, path, namespace=namespace, pod=pod)
    for name in ASKED:
        for gpus, count in ((1, 1), (2, 3), (4, 1), (8, 2)):
            query = {"gpus": str(gpus), "count": str(count)} | ({"class": name} if name else {})
            found[f"what-if {name} {gpus}"] = await read(client, "/api/v1/what-if", **query)
        async with client.post("/api/v1/what-if", data=manifest(name)) as answer:
            found[f"manifest {name}"] = answer.status, await answer.text()
    return found


def manifest(class_name: str, *, priority: int | None = None, classes: tuple[tuple[str, int], ...] = ()) -> str:
    """A pod that only fits if it preempts others, and PriorityClasses beside it."""
    limits = {"nvidia.com/gpu": "8"}
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"limits": limits}}]}
    spec |= {"priorityClassName": class_name} if class_name else {}
    spec |= {"priority": priority} if priority is not None else {}
    pod = {"kind": "Pod", "metadata": {"name": "p", "namespace": "ml"}, "spec": spec}
    items = [{"kind": "PriorityClass", "metadata": {"name": name}, "value": value} for name, value in classes]
    return json.dumps({"kind": "List", "items": [*items, pod]})


async def test_no_field_of_any_answer_has_the_priority_of_another_tenant() -> None:
    async with served(RESTRICTED, state) as client:
        answers = await every_answer(client)

    assert {status for status, _ in answers.values()} == {200, 400, 404}
    assert_tells_nothing(answers)
    shown = {name: answers[f"what-if {name} 1"][1]["forecasts"][0]["priority"] for name in ASKED if name != "missing"}
    assert shown == OWN | dict.fromkeys([*SECRET, "raised"]) | {"system-node-critical": 2_000_001_000, "": 0}


async def test_a_user_without_tenants_is_told_every_value() -> None:
    async with served(read=state) as client:
        answers = await every_answer(client)

    for name, value in SECRET.items():
        assert answers[f"what-if {name} 1"][1]["forecasts"][0]["priority"] == value
    with pytest.raises(AssertionError):
        assert_tells_nothing(answers)


@pytest.mark.parametrize("name", ["serving", "research", "mine", ""])
async def test_trying_values_does_not_tell_the_priority_of_others(name: str) -> None:
    """With a class or a priority of its own, a pod would preempt what is below it: halving finds it."""
    found = set()
    async with served(RESTRICTED, state) as client:
        for value in (1, *(each + step for each in SECRET.values() for step in (-1, 1)), 10**9):
            for body in (manifest(name, classes=((name or "mine", value),)), manifest(name, priority=value)):
                async with client.post("/api/v1/what-if", data=body) as answer:
                    text = await answer.text()
                    document = json.loads(text) if answer.content_type == "application/json" else {}
                    found.add(json.dumps(document.get("forecasts", text)))

    assert len(found) == 1
