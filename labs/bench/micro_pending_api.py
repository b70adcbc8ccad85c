"""Measures the answers about waiting pods: 2,000 wait, 20,000 hold the GPUs of 2,500 nodes."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Final

import msgspec

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.fleet.pending_now import PendingNow, read_pending
from gputally.answers.forecast import forecast
from gputally.answers.past_pods import PastPod, PastVictims
from gputally.answers.pending_list import pending_list
from gputally.answers.planned_pods import planned_by_question
from gputally.answers.viewer import ALL
from gputally.answers.why import why_document
from gputally.model.kube.kinds import Kind
from gputally.model.kube.placeable_pods import PlaceablePod
from gputally.model.observation import RelistFinished, RelistStarted, Upserted
from gputally.questions.pending import Pending
from gputally.questions.what_if import WhatIfPods
from gputally.questions.why import Why
from labs.bench.figure import Figure
from tests.core.manifests import GPU_NAME, NodeForm, PodForm, priority_class, us
from tests.core.replay import Replay
from tests.fakes.stream import BOOK

NODES, HOLDING, WAITING = 2500, 20_000, 2000
NOW_S: Final = 50
_REPEATED: Final = 5


class _NothingPast:
    def waits(self, uid: str) -> tuple[()]:
        """None."""
        del uid
        return ()

    def last_named(self, namespace: str, name: str) -> PastPod | None:
        """None."""
        del namespace, name
        return None

    def victims(self, namespace: str, job: str) -> PastVictims:
        """None."""
        del namespace, job
        return PastVictims(None)

    def records_from_us(self) -> int | None:
        """Not known."""
        return None


def measure() -> Iterator[Figure]:
    """CPU time: of the event loop for the snapshots, of a thread for the answers."""
    fleet = _fleet()
    fleet.waiting.judge(at_us=us(NOW_S))
    gc.collect()
    gc.freeze()

    def now(*, with_room: bool = True) -> PendingNow:
        return read_pending(fleet, now_us=us(NOW_S), with_room=with_room)

    listed, helped = Pending(limit=1000), Pending(limit=100, helps=True)
    eight = WhatIfPods(gpus=8, class_name="top")
    answers: dict[str, Callable[[PendingNow], object]] = {
        "list_of_1000": lambda state: pending_list(state, listed, ALL),
        "list_of_100_with_helps": lambda state: pending_list(state, helped, ALL),
        "why": lambda state: why_document(state, Why(namespace="ns0", pod="w0"), ALL, past=_NothingPast()),
        "what_if": lambda state: forecast(state, [planned_by_question(eight, state.room)], ALL),
    }
    yield Figure("pending_api.snapshot_ms", _best(lambda: now(with_room=False)), "ms")
    yield Figure("pending_api.snapshot_with_room_ms", _best(now), "ms")
    for name, answer in answers.items():
        states = [now() for _ in range(_REPEATED)]
        yield Figure(f"pending_api.{name}_ms", _best(partial(_answered, answer, states)), "ms")
    gc.unfreeze()


def _answered(answer: Callable[[PendingNow], object], states: list[PendingNow]) -> None:
    """From a snapshot of its own, as each request has one."""
    answer(states.pop())


def _best(call: Callable[[], object]) -> float:
    """Milliseconds of CPU time, the fastest of several calls."""
    times = []
    for _ in range(_REPEATED):
        started = time.process_time()
        call()
        times.append(1000 * (time.process_time() - started))
    return min(times)


def _fleet() -> Fleet:
    chance, replay = Random(1), Replay(book=BOOK)
    for name, value in (("top", 9000), ("mid", 500), ("low", 10)):
        replay.see_class(priority_class(name, value), at=0)
    with _listed(replay, Kind.NODES):
        replay.see(*map(_node, range(NODES)), at=0)
    with _listed(replay, Kind.PODS):
        for number in range(HOLDING):
            _see(replay, _holding(number, chance))
        for number in range(WAITING):
            _see(replay, _waiting(number, chance))
    return replay.fleet


@contextmanager
def _listed(replay: Replay, kind: Kind) -> Iterator[None]:
    replay.apply(RelistStarted(kind=kind, at_us=us(1)))
    yield
    replay.apply(RelistFinished(kind=kind, version="1", at_us=us(30), since_us=None, as_of_us=us(30)))


def _see(replay: Replay, form: PodForm) -> None:
    pod = msgspec.convert(form.manifest(), PlaceablePod)
    replay.apply(Upserted(kind=Kind.PODS, object=pod, at_us=us(30), since_us=us(30)))


def _node(number: int) -> NodeForm:
    labels = {"nvidia.com/gpu.product": f"model-{number % 4}", "pool": f"pool-{number % 20}"}
    return NodeForm(name=f"n{number}", capacity={GPU_NAME: 8, "pods": 110, "memory": 1 << 40}, labels=labels)


def _holding(number: int, chance: Random) -> PodForm:
    tier, priority = chance.choice((("top", 9000), ("mid", 500)))
    place, node = f"ns{number % 50}", f"n{number % NODES}"
    return PodForm(name=f"b{number}", namespace=place, tier=tier, priority=priority, node=node, scheduled=5, started=6)


def _waiting(number: int, chance: Random) -> PodForm:
    selector = {"pool": f"pool-{chance.randrange(20)}"} if number % 2 else {}
    gpus, place = chance.choice((1, 2, 4, 8)), f"ns{number % 50}"
    return PodForm(
        name=f"w{number}", namespace=place, gpus=gpus, tier="mid", priority=500, created=20, node_selector=selector
    )
