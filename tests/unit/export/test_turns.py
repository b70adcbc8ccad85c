"""Turns are shared by clients: any order of requests, ends and disconnections."""

import asyncio
import threading
from collections import Counter
from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.export import turns as module
from gputally.export.turns import CLIENT, TooBusy, Turns, client_address

CLIENTS = ("", "anna", "root")
"""The first is the process itself."""
ACTIONS = st.tuples(st.sampled_from(("ask", "ask", "ask", "end", "leave")), st.sampled_from(CLIENTS))


class World:
    """Requests that have a turn until they are ended."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.running: list[tuple[str, asyncio.Task[None]]] = []
        self.waiting: list[tuple[str, asyncio.Task[None]]] = []
        self.rejected: Counter[str] = Counter()
        self.served: list[str] = []
        self._ends: dict[asyncio.Task[None], asyncio.Event] = {}

    async def ask(self, client: str) -> None:
        """A new request of the client."""
        context = copy_context()
        context.run(CLIENT.set, client)
        end = asyncio.Event()
        task = asyncio.create_task(self._request(client, end), context=context)
        self._ends[task] = end
        self.waiting.append((client, task))
        await settled()

    async def end(self, client: str) -> None:
        """The oldest request of the client that has a turn ends."""
        found = next((each for each in self.running if each[0] == client), None)
        if found:
            self.running.remove(found)
            self._ends[found[1]].set()
            await settled()

    async def leave(self, client: str) -> None:
        """The latest request of the client is cancelled."""
        found = [task for name, task in (*self.running, *self.waiting) if name == client]
        if found:
            found[-1].cancel()
            await settled()
            self.running = [each for each in self.running if not each[1].done()]
            self.waiting = [each for each in self.waiting if not each[1].done()]

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


@given(st.lists(ACTIONS, max_size=80), st.integers(1, 3), st.integers(1, 3), st.integers(1, 6))
def test_turns_are_bounded_used_and_given_in_rotation(
    actions: list[tuple[str, str]], at_once: int, of_client: int, places: int
) -> None:
    async def run() -> None:
        world = World(Turns(at_once, places=places, of_client=of_client))
        passed_over: Counter[str] = Counter()
        for action, client in actions:
            served = len(world.served)
            before = {name for name, _ in world.waiting}
            await getattr(world, action)(client)
            running = Counter(name for name, _ in world.running)
            waiting = Counter(name for name, _ in world.waiting)

            assert running.total() <= at_once
            assert max(running.values(), default=0) <= of_client
            assert max((running + waiting).values(), default=0) <= places
            assert running.total() == at_once or all(running[each] == of_client for each in waiting), "an unused turn"
            for each in set(CLIENTS) - set(waiting):
                passed_over[each] = 0
            for given_to in world.served[served:]:
                for each in before & set(waiting):
                    passed_over[each] += each != given_to and running[each] < of_client
                passed_over[given_to] = 0
            assert all(passed_over[each] < len(CLIENTS) for each in waiting), "passed over"
        for client in CLIENTS * places * 2:
            await world.end(client)
        assert not world.waiting
        assert not any((world.turns._running, world.turns._lines)), "a place was not given back"

    asyncio.run(run())


async def test_beyond_all_places_the_client_with_most_of_them_loses_its_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING", 4)
    world = World(Turns(1, places=10))
    for client in ("anna", "anna", "anna", "anna", "bert", "root", "root"):
        await world.ask(client)

    assert world.rejected == {"anna": 1, "root": 1}
    assert Counter(name for name, _ in world.waiting) == {"anna": 2, "bert": 1, "root": 1}
    for client in ("anna", "anna", "bert", "root", "anna"):
        await world.end(client)
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
        first.cancel()
        await settled()
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
        ("", ""),
        (None, ""),
    ],
)
def test_all_addresses_of_a_site_are_one_client(remote: str | None, client: str) -> None:
    assert client_address(remote) == client
