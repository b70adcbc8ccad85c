"""Real traces replayed while connections, server, nodes and clocks fail: right, or with a stated blind interval."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gputally.sim.cluster import SimCluster
from gputally.sim.hardship import NAMESPACE, REBORN, Hardship
from gputally.sim.replay import Replay
from gputally.sim.store import Change
from gputally.sim.trace import read_trace
from gputally.sources import backoff
from tests.behaviour.recorder import us
from tests.behaviour.test_replay import HELIOS, MONDAY_US, OPENB, assert_sound, caught_up, scraped_meanwhile
from tests.behaviour.traces import Row, aggregating, file, head, query, rows_of
from tests.fakes.command import Samples, scrape
from tests.fakes.until import until

SECOND = 1_000_000
GPU_SECOND = 10**12
MICRO_PER_MILLI = 1_000
EVERY_REAL_SECONDS = 0.1

LIVES = """
SELECT a.namespace, a.name, a.blind_from_us, a.blind_to_us, sum(s.quantity * (s.end_us - s.start_us))
FROM allocations a JOIN current_segments s USING (pod_uid, revision)
GROUP BY a.pod_uid
"""
INTERRUPTIONS = "SELECT from_us, to_us FROM interruptions WHERE kind = 'pods'"
EVERYTHING = "SELECT quantity * (end_us - start_us) FROM current_segments"


class Life(NamedTuple):
    """From a pod's binding to the end of its container (µs), and where."""

    start_us: int
    end_us: int
    node: str


class Told:
    """What the API says of each pod of the trace in the end."""

    def __init__(self, cluster: SimCluster) -> None:
        self.lives: dict[str, Life] = {}
        cluster.store.subscribe("pods", self._observe)

    def _observe(self, change: Change) -> None:
        pod: dict[str, Any] = change.now.doc
        for status in pod["status"].get("containerStatuses", ()):
            end = status["state"].get("terminated", {}).get("finishedAt")
            if end and pod["metadata"]["namespace"] != NAMESPACE:
                [bound] = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
                start_us = us(bound["lastTransitionTime"])
                life = Life(start_us, max(start_us, us(end)), pod["spec"]["nodeName"])
                self.lives[pod["metadata"]["name"]] = life


@pytest.mark.parametrize(
    ("trace", "skip", "speed"),
    [
        (OPENB, 6750, 10_000),
        pytest.param(OPENB, 6300, 2_000, marks=pytest.mark.e2e),
        pytest.param(HELIOS, 6900, 5_000, marks=pytest.mark.e2e),
    ],
)
async def test_whatever_fails_the_ledger_is_right_outside_the_intervals_it_states(
    trace: str, skip: int, speed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "FIRST_SECONDS", 0.05)  # a second of ours is hours in there
    monkeypatch.setattr(backoff, "LONGEST_SECONDS", 0.2)
    part = head(file(f"{trace}.csv.gz"), tmp_path, skip=skip, count=300)

    told, hardship, scrapes = await replayed_the_hard_way(part, tmp_path, speed)

    rows, ledger = rows_of(part), tmp_path / "ledger.db"
    assert len({deed.trouble for deed in hardship.deeds}) > len(hardship.troubles) // 2, "that was not hard"
    wrong = {deed.target for deed in hardship.deeds if deed.trouble in ("skew", "unreachable")}
    assert_rows_are_told(rows, told, but=wrong)
    assert_accounted(ledger, rows, told, lag_us=speed * SECOND)
    assert_namesakes_are_accounted(ledger, but=wrong)
    assert_sound(scrapes, sum(time for (time,) in query(ledger, EVERYTHING)) / GPU_SECOND)


async def replayed_the_hard_way(trace: Path, scratch: Path, speed: int) -> tuple[Told, Hardship, list[Samples]]:
    """Trouble ends with the trace, so that the product can come to know whatever is still to be known."""
    async with (
        SimCluster(seed=1, speed=speed, start_us=MONDAY_US, bookmark_s=0.5) as cluster,
        aggregating(cluster, scratch) as running,
    ):
        await until(lambda: not running.ready().missing)
        told = Told(cluster)
        replay = Replay(cluster.registry, read_trace(trace))
        replay.begin()
        hardship = cluster.simulation.make_hard(every_us=int(EVERY_REAL_SECONDS * speed * SECOND))
        scrapes = await scraped_meanwhile(replay, running)
        hardship.end()
        await caught_up(cluster, running)
        url = f"http://{running.addresses[0]}"
        return told, hardship, [*scrapes, await scrape(url), await scrape(url)]


def assert_rows_are_told(rows: list[Row], told: Told, *, but: set[str]) -> None:
    """The API says what the trace does, `but` on nodes whose clock was wrong or that did not hear of a deletion."""
    assert told.lives.keys() == {row.name for row in rows}
    for row in rows:
        start_us, end_us, node = told.lives[row.name]
        assert node in but or end_us - start_us == (row.end - row.start) * SECOND, row


def assert_accounted(ledger: Path, rows: list[Row], told: Told, *, lag_us: int) -> None:
    """To the second, or blind with the truth inside. `lag_us` is what passes in the model in a second of ours."""
    milli = {row.name: row.milli for row in rows}
    exact = set()
    ours = [life for namespace, *life in query(ledger, LIVES) if namespace != NAMESPACE]
    for name, blind_from_us, blind_to_us, time in ours:
        life = told.lives[name]
        if blind_from_us is None:
            assert time == (life.end_us - life.start_us) * milli[name] * MICRO_PER_MILLI, name
            exact.add(name)
        else:
            assert blind_from_us - lag_us < life.end_us <= blind_to_us, name
        del milli[name]
    assert len(exact) > len(rows) / 2, "that was too hard to prove anything"
    interruptions = query(ledger, INTERRUPTIONS)
    for life in (told.lives[name] for name in milli):  # lived and died while nobody watched and the server forgot
        assert any(a - lag_us < life.start_us <= life.end_us <= b for a, b in interruptions), life


def assert_namesakes_are_accounted(ledger: Path, *, but: set[str]) -> None:
    """Each pod that took the name of another had its one GPU for its one second."""
    if REBORN not in but:
        times = [time for _, name, blind_us, _, time in query(ledger, LIVES) if name == REBORN and blind_us is None]
        assert times == [GPU_SECOND] * len(times)
