"""Real traces replayed while connections, server, nodes and clocks fail: right, or with a stated blind interval."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gputally.accounting.nodes.node_clock import OFF_US
from gputally.kube import backoff
from gputally_sim.api.store import Change
from gputally_sim.cluster import SimCluster
from gputally_sim.scenarios.chaos import MAX_SKEW_S, NAMESPACE, REBORN, Chaos
from gputally_sim.trace.replay import Replay
from gputally_sim.trace.trace import read_trace
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
SELECT a.namespace, a.name, a.gap_from_us, a.gap_to_us, sum(s.quantity * (s.end_us - s.start_us))
FROM allocations a JOIN current_segments s USING (pod_uid, revision)
GROUP BY a.pod_uid
"""
INTERRUPTIONS = "SELECT from_us, to_us FROM interruptions WHERE kind = 'pods'"
EVERYTHING = "SELECT quantity * (end_us - start_us) FROM current_segments"


class Life(NamedTuple):
    """From a pod's binding to the end of its container (µs) and where, as told; `true_us` is the end by the server.

    `ahead_us` is how far the node's clock was ahead when the pod began, and when it ended.
    """

    start_us: int
    end_us: int
    node: str
    true_us: int
    ahead_us: tuple[int, int]


class Told:
    """What the API says of each pod of the trace in the end."""

    def __init__(self, cluster: SimCluster) -> None:
        self.lives: dict[str, Life] = {}
        self._ahead_us: dict[str, int] = {}
        self._clock_us = cluster.simulation.nodes.clock_us
        cluster.store.subscribe("pods", self._observe)

    def _observe(self, change: Change) -> None:
        pod: dict[str, Any] = change.now.doc
        name = pod["metadata"]["name"]
        for status in pod["status"].get("containerStatuses", ()):
            node = pod["spec"]["nodeName"]
            ahead_us = self._clock_us(node, 0)
            began_ahead_us = self._ahead_us.setdefault(name, ahead_us)
            end = status["state"].get("terminated", {}).get("finishedAt")
            if end and pod["metadata"]["namespace"] != NAMESPACE:
                [bound] = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
                start_us = us(bound["lastTransitionTime"])
                ahead = began_ahead_us, ahead_us
                life = Life(start_us, max(start_us, us(end)), node, us(end) - ahead_us, ahead)
                self.lives.setdefault(name, life)


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

    told, chaos, scrapes = await replayed_the_hard_way(part, tmp_path, speed)

    rows, ledger = rows_of(part), tmp_path / "ledger.db"
    assert len({action.fault for action in chaos.actions}) > len(chaos.fault_names) // 2, "that was not hard"
    wrong = {action.target for action in chaos.actions if action.fault in ("skew", "unreachable")}
    assert_rows_are_told(rows, told, but=wrong)
    assert_accounted(ledger, rows, told, lag_us=speed * SECOND)
    assert_namesakes_are_accounted(ledger, but=wrong)
    assert_sound(scrapes, sum(time for (time,) in query(ledger, EVERYTHING)) / GPU_SECOND)


async def replayed_the_hard_way(trace: Path, scratch: Path, speed: int) -> tuple[Told, Chaos, list[Samples]]:
    """Trouble ends with the trace, so that the product can come to know whatever is still to be known."""
    async with (
        SimCluster(seed=1, speed=speed, start_us=MONDAY_US, bookmark_s=0.5) as cluster,
        aggregating(cluster, scratch) as running,
    ):
        await until(lambda: not running.ready().missing)
        told = Told(cluster)
        replay = Replay(cluster.registry, read_trace(trace))
        replay.begin()
        chaos = cluster.simulation.cause_chaos(every_us=int(EVERY_REAL_SECONDS * speed * SECOND))
        scrapes = await scraped_meanwhile(replay, running)
        chaos.end()
        await caught_up(cluster, running)
        url = f"http://{running.addresses[0]}"
        return told, chaos, [*scrapes, await scrape(url), await scrape(url)]


def assert_rows_are_told(rows: list[Row], told: Told, *, but: set[str]) -> None:
    """The API says what the trace does, `but` on nodes whose clock was wrong or that did not hear of a deletion."""
    assert told.lives.keys() == {row.name for row in rows}
    for row in rows:
        life = told.lives[row.name]
        assert life.node in but or life.end_us - life.start_us == (row.end - row.start) * SECOND, row


def assert_accounted(ledger: Path, rows: list[Row], told: Told, *, lag_us: int) -> None:
    """To the second, or blind with the truth inside. `lag_us` is what passes in the model in a second of ours.

    What a node's wrong clock says may be believed, or set right by it: off by no more than the clock ever was.
    """
    milli = {row.name: row.milli for row in rows}
    exact = set()
    ours = [life for namespace, *life in query(ledger, LIVES) if namespace != NAMESPACE]
    for name, gap_from_us, gap_to_us, time in ours:
        life = told.lives[name]
        off_us = 2 * MAX_SKEW_S * SECOND if any(life.ahead_us) else 0
        if gap_from_us is None:
            quantity = milli[name] * MICRO_PER_MILLI
            assert abs(time - (life.end_us - life.start_us) * quantity) <= off_us * quantity, name
            exact.add(name)
        else:
            unseen_us = off_us if life.ahead_us[0] != life.ahead_us[1] else OFF_US if off_us else 0
            assert gap_from_us - unseen_us - lag_us < life.true_us <= gap_to_us + unseen_us, name
        del milli[name]
    assert len(exact) > len(rows) / 2, "that was too hard to prove anything"
    interruptions = query(ledger, INTERRUPTIONS)
    for life in (told.lives[name] for name in milli):  # lived and died while nobody watched and the server forgot
        assert any(a - lag_us < life.start_us <= life.end_us <= b for a, b in interruptions), life


def assert_namesakes_are_accounted(ledger: Path, *, but: set[str]) -> None:
    """Each pod that took the name of another had its one GPU for its one second."""
    if REBORN not in but:
        times = [time for _, name, gap_us, _, time in query(ledger, LIVES) if name == REBORN and gap_us is None]
        assert times == [GPU_SECOND] * len(times)
