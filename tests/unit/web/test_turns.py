"""Turns are shared by clients: any order of requests, ends and disconnections."""

import asyncio
import threading
from collections import Counter
from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.web import turns as module
from gputally.web.turns import CLIENT, OWN, WAITING, TooBusy, Turns, client_address

CLIENTS = (OWN, "anna", "bert", "root")
ACTIONS = st.tuples(
    st.sampled_from(("ask", "ask", "ask", "ask_beside_leaving", "end", "leave")),
    st.sampled_from(CLIENTS),
    st.integers(0, 5),
)
AT_ONCE = st.lists(ACTIONS, min_size=1, max_size=3)
"""Actions between which no request runs, as if all of them had arrived together."""


class World:
    """Requests that have a turn until they are ended; `settled` tells them what has happened."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.running: list[tuple[str, asyncio.Task[None]]] = []
        self.waiting: list[tuple[str, asyncio.Task[None]]] = []
        self.rejected: Counter[str] = Counter()
        self.served: list[str] = []
        self.all: list[asyncio.Task[None]] = []
        self._ends: dict[asyncio.Task[None], asyncio.Event] = {}

    def ask(self, client: str, _: int = 0) -> None:
        """A new request of the client."""
        context = copy_context()
        context.run(CLIENT.set, client)
        end = asyncio.Event()
        task = asyncio.create_task(self._request(client, end), context=context)
        self._ends[task] = end
        self.waiting.append((client, task))
        self.all.append(task)

    def ask_beside_leaving(self, client: str, number: int) -> None:
        """A new request, at the moment at which others of all other clients are cancelled."""
        self.ask(client)
        for other in {name for name, _ in self.waiting} - {client}:
            self.leave(other, -1 - number % 2)

    def end(self, client: str, _: int = 0) -> None:
        """The oldest request of the client that has a turn ends."""
        found = next((each for each in self.running if each[0] == client), None)
        if found:
            self.running.remove(found)
            self._ends[found[1]].set()

    def leave(self, client: str, number: int) -> None:
        """A request of the client is cancelled."""
        found = [each for each in (*self.running, *self.waiting) if each[0] == client]
        if found:
            left = found[number % len(found)]
            left[1].cancel()
            self.running = [each for each in self.running if each is not left]
            self.waiting = [each for each in self.waiting if each is not left]

    async def _request(self, client: str, end: asyncio.Event) -> None:
        task = asyncio.current_task()
        assert task
        try:
            async with self.turns.turn():
                self.waiting.remove((client, task))
                self.running.append((client, task))
                self.served.append(client)
                await end.wait()
        except TooBusy:
            self.waiting.remove((client, task))
            self.rejected[client] += 1


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@given(
    st.lists(AT_ONCE, max_size=60), st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.sampled_from((2, 4, 64))
)
def test_turns_are_bounded_used_and_given_in_rotation(
    steps: list[list[tuple[str, str, int]]], at_once: int, of_client: int, places: int, most: int
) -> None:
    async def run() -> None:
        world = World(Turns(at_once, places=places, of_client=of_client))
        passed_over: Counter[str] = Counter()
        for step in steps:
            served = len(world.served)
            before = {name for name, _ in world.waiting}
            for action, client, number in step:
                getattr(world, action)(client, number)
            await settled()
            running = Counter(name for name, _ in world.running)
            waiting = Counter(name for name, _ in world.waiting)
            others = Counter({name: count for name, count in (running + waiting).items() if name != OWN})

            assert running.total() <= at_once
            assert max(running.values(), default=0) <= of_client
            assert max(others.values(), default=0) <= places
            assert waiting.total() - waiting[OWN] <= most
            assert running.total() == at_once or all(running[each] == of_client for each in waiting), "an unused turn"
            for each in set(CLIENTS) - set(waiting):
                passed_over[each] = 0
            for given_to in world.served[served:]:
                for each in before & set(waiting) if len(step) == 1 else ():
                    passed_over[each] += each != given_to and running[each] < of_client
                passed_over[given_to] = 0
            assert all(passed_over[each] < len(CLIENTS) for each in waiting), "passed over"
        while world.running:
            world.end(world.running[0][0])
            await settled()
        assert not world.waiting
        assert not any((world.turns._running, world.turns._lines)), "a place was not given back"
        assert not world.rejected[OWN]
        results = await asyncio.gather(*world.all, return_exceptions=True)
        assert all(each is None or isinstance(each, asyncio.CancelledError) for each in results), results

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "WAITING", most)
        asyncio.run(run())


async def test_a_request_beside_others_that_disconnect_in_the_same_moment_takes_one_of_their_places() -> None:
    world = World(Turns(1, places=100))
    for _ in range(1 + WAITING):
        world.ask("anna")
    await settled()
    world.ask("root")
    for _, task in world.waiting[:-1]:
        task.cancel()
    await settled()
    world.end("anna")
    await settled()

    assert world.served == ["anna", "root"]
    assert not world.rejected


async def test_the_process_itself_is_never_refused_beside_more_clients_than_may_wait() -> None:
    world = World(Turns(1, places=1))
    for number in range(WAITING + 10):
        world.ask(f"10.0.0.{number}")
    await settled()
    assert world.rejected.total() == 9
    for _ in range(3):
        world.ask(OWN)
    world.ask("root")
    await settled()
    while world.running:
        world.end(world.running[0][0])
        await settled()

    assert Counter(world.served)[OWN] == 3
    assert len(world.served) == 1 + WAITING + 3
    assert world.rejected["root"] == 1
    assert world.rejected.total() == 10


async def test_beyond_all_places_the_client_with_most_of_them_loses_its_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING", 4)
    world = World(Turns(1, places=10))
    for client in ("anna", "anna", "anna", "anna", "bert", "root", "root"):
        world.ask(client)
        await settled()

    assert world.rejected == {"anna": 1, "root": 1}
    assert Counter(name for name, _ in world.waiting) == {"anna": 2, "bert": 1, "root": 1}
    for client in ("anna", "anna", "bert", "root", "anna"):
        world.end(client)
        await settled()
    assert world.served == ["anna", "anna", "bert", "root", "anna"]


async def test_a_turn_lasts_until_its_thread_is_done_though_its_client_left() -> None:
    turns, entered, go_on = Turns(1, places=4), threading.Event(), threading.Event()

    def work(_: None) -> None:
        entered.set()
        go_on.wait()

    first = asyncio.create_task(turns.answer(lambda: None, work))
    try:
        await asyncio.to_thread(entered.wait, 5)
        second = asyncio.create_task(turns.answer(lambda: None, lambda _: "second"))
        for _ in range(3):  # by the disconnection, and by the end of the server
            first.cancel()
            await settled()
        assert not first.done()
        assert not second.done()
    finally:
        go_on.set()

    assert await second == "second"
    assert first.cancelled()


async def test_an_error_gives_the_turn_back() -> None:
    turns = Turns(1, places=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await turns.answer(lambda: 0, lambda zero: 1 // zero)
        with pytest.raises(ZeroDivisionError):
            await turns.answer(lambda: 1 // 0, lambda _: 1)


@pytest.mark.parametrize(
    ("remote", "client"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", "unknown address"),
        (None, "unknown address"),
    ],
)
def test_all_addresses_of_a_site_are_one_client(remote: str | None, client: str) -> None:
    assert client_address(remote) == client
