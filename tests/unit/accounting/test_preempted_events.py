"""What is kept of Events, which whoever may write them in its own namespace can forge."""

import tracemalloc
from dataclasses import replace

import pytest

from gputally.accounting.disruptions.preemptors import PreemptedEvents
from gputally.accounting.totals.total import Total
from gputally.errors import MalformedObject
from gputally.model.disruptions import Preemptor
from gputally.model.kube.kinds import Kind
from tests.core.manifests import Json, NodeForm, PodForm, preempted_event
from tests.core.replay import Replay

MOST = Kind.EVENTS.limit.most
VICTIM = PodForm(name="victim", uid="v", tier="low", node="n1", scheduled=10, started=11)
BY = PodForm(name="by", uid="b", tier="high")
EVENT = preempted_event(VICTIM, by=BY)


def filled(events: PreemptedEvents, namespace: str, count: int, *, first: int = 0) -> None:
    for i in range(first, first + count):
        events.add(namespace, f"v{i}", Preemptor(uid=f"b{i}", namespace="ml", name="by"), at_us=i)


@pytest.mark.parametrize(
    "forged",
    [
        {"involvedObject": {"kind": "Pod", "namespace": "ml", "uid": "v" * 129}},
        {"related": {"uid": "b" * 129, "namespace": "ml", "name": "by"}},
        {"related": {"uid": "é", "namespace": "ml", "name": "by"}},
        {"related": {"uid": "b", "namespace": "ml", "name": "n" * 254}},
        {"related": {"uid": "b", "namespace": "m" * 254, "name": "by"}},
        {"related": {"uid": "b", "namespace": "ml", "name": "a/../b"}},
        {"related": {"uid": "b", "namespace": "ml", "name": "é"}},
    ],
)
def test_an_event_that_names_what_cannot_exist_is_left_out_and_told_in_few_words(forged: Json) -> None:
    replay = Replay()

    with pytest.raises(MalformedObject) as refused:
        replay.see_event(EVENT | forged, at=51)

    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("changed", [{"reason": "Killing"}, {"involvedObject": {"kind": "Node", "uid": "n" * 999}}])
def test_events_that_say_nothing_to_preemptions_are_not_judged(changed: Json) -> None:
    Replay().see_event(EVENT | {"related": {"uid": "b" * 999}} | changed, at=51)


@pytest.mark.parametrize("related", [{"uid": "b"}, {"uid": "b", "namespace": "ml", "name": "by"}])
def test_a_preemptor_may_be_named_by_its_uid_alone(related: Json) -> None:
    replay = Replay()
    replay.see(NodeForm(), at=1)
    replay.see(VICTIM, BY, at=49)
    replay.see(replace(VICTIM, marked=50, deleted=50, version=2), at=51)
    replay.see_event(EVENT | {"related": related}, at=52)

    assert replay.true(Total.PREEMPTIONS, 53) == {("low", "high"): 1}


def test_a_namespace_that_fills_the_room_pushes_out_its_own_oldest_events_alone() -> None:
    events = PreemptedEvents()
    filled(events, "honest", 3)
    filled(events, "evil", MOST + 100)

    assert len(events) == MOST
    assert [events.by("honest", f"v{i}") is not None for i in range(3)] == [True] * 3
    assert events.by("evil", "v102") is None
    assert events.by("evil", "v103")


def test_namespaces_that_fill_the_room_share_it() -> None:
    events = PreemptedEvents()
    filled(events, "evil", MOST)
    filled(events, "honest", MOST)

    evil, honest = (sum(events.by(each, f"v{i}") is not None for i in range(MOST)) for each in ("evil", "honest"))

    assert evil + honest == MOST
    assert abs(evil - honest) <= 2


def test_an_event_that_comes_again_takes_no_more_room_and_is_new_again() -> None:
    events = PreemptedEvents()
    filled(events, "ml", 2)
    filled(events, "ml", 1)
    events.add("ml", "v0", Preemptor(uid="other", namespace="ml", name="by"), at_us=9)

    events.forget(before_us=2)

    assert len(events) == 1
    assert events.by("ml", "v0") == Preemptor(uid="other", namespace="ml", name="by")


def test_what_is_old_is_forgotten_with_its_namespace() -> None:
    events = PreemptedEvents()
    filled(events, "ml", 5)
    events.forget(before_us=9)

    assert (len(events), events.by("ml", "v1"), events._by_namespace) == (0, None, {})


def test_the_longest_events_that_are_kept_take_a_few_megabytes() -> None:
    replay = Replay()
    tracemalloc.start()
    for i in range(2 * MOST):
        uid = f"{i}".zfill(128)
        related = {"uid": uid, "namespace": "m" * 253, "name": "n" * 253}
        replay.see_event(EVENT | {"involvedObject": {"kind": "Pod", "uid": uid}, "related": related}, at=51)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(replay.fleet.disrupted.preemptions.events) == MOST
    assert held < 20_000_000
