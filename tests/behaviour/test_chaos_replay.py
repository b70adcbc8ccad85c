"""Replays real traces while connections, server, nodes and clocks fail: the ledger is exact or states a gap."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gputally.accounting.facts.node_clock import OFF_US
from gputally.kube import failures
from gputally_sim.api.store import Change
from gputally_sim.cluster import SimCluster
from gputally_sim.scenarios.chaos import MAX_SKEW_S, NAMESPACE, REBOOTING, REBORN, Chaos
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
REJECTED = f"""
SELECT a.pod_uid, min(s.start_us), max(s.end_us), a.gap_to_us
FROM allocations a JOIN current_segments s USING (pod_uid, revision)
WHERE a.name = '{REBOOTING}' AND a.end_by = 'rejected' GROUP BY a.pod_uid
"""
INTERRUPTIONS = "SELECT from_us, to_us FROM interruptions WHERE kind = 'pods'"
UNACCOUNTED = "SELECT document FROM working WHERE kind = 'unaccounted-day'"
EVERYTHING = "SELECT quantity * (end_us - start_us) FROM current_segments"


class Life(NamedTuple):
    """From a pod's binding to the end of its container (µs), and its node, as reported.

    `true_us` is the end by the server's clock. `ahead_us` is how far the node's clock was ahead at start and end.
    """

    start_us: int
    end_us: int
    node: str
    true_us: int
    ahead_us: tuple[int, int]


class Observed:
    """The final state of each pod of the trace, as the API reports it.

    `rejected` are by UID the creation and the rejection (µs) of pods that their kubelet had accepted.
    """

    def __init__(self, cluster: SimCluster) -> None:
        self.lives: dict[str, Life] = {}
        self.rejected: dict[str, tuple[int, int]] = {}
        self._agenda = cluster.simulation.agenda
        self._ahead_us: dict[str, int] = {}
        self._clock_us = cluster.simulation.nodes.clock_us
        cluster.store.subscribe("pods", self._observe)

    def _observe(self, change: Change) -> None:
        pod: dict[str, Any] = change.now.doc
        name = pod["metadata"]["name"]
        if name == REBOOTING and pod["status"]["phase"] == "Failed":
            times = us(pod["metadata"]["creationTimestamp"]), self._agenda.now_us
            self.rejected.setdefault(pod["metadata"]["uid"], times)
        for status in pod["status"].get("containerStatuses", ()):
            node = pod["spec"]["nodeName"]
            ahead_us = self._clock_us(node, 0)
            start_ahead_us = self._ahead_us.setdefault(name, ahead_us)
            end = status["state"].get("terminated", {}).get("finishedAt")
            if end and pod["metadata"]["namespace"] != NAMESPACE:
                [bound] = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
                start_us = us(bound["lastTransitionTime"])
                ahead = start_ahead_us, ahead_us
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
async def test_the_ledger_is_exact_outside_its_stated_gaps_whatever_fails(
    trace: str, skip: int, speed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "FIRST_SECONDS", 0.05)  # a real second is hours of simulated time
    monkeypatch.setattr(failures, "LONGEST_SECONDS", 0.2)
    part = head(file(f"{trace}.csv.gz"), tmp_path, skip=skip, count=300)

    observed, chaos, scrapes = await replayed_with_chaos(part, tmp_path, speed)

    rows, ledger = rows_of(part), tmp_path / "ledger.db"
    assert len({action.fault for action in chaos.actions}) > len(chaos.fault_names) // 2, (
        "too few kinds of faults occurred"
    )
    inexact = {action.target for action in chaos.actions if action.fault in ("skew", "unreachable")}
    assert_rows_are_observed(rows, observed, but=inexact)
    assert_accounted(ledger, rows, observed, lag_us=speed * SECOND)
    assert_namesakes_are_accounted(ledger, but=inexact)
    assert_rejected_are_accounted(ledger, observed, lag_us=speed * SECOND)
    assert_sound(scrapes, sum(time for (time,) in query(ledger, EVERYTHING)) / GPU_SECOND)
    assert_unaccounted_were_counted_until_they_ended(ledger, scrapes[-1])


def assert_unaccounted_were_counted_until_they_ended(ledger: Path, latest: Samples) -> None:
    """Those of the chaos, as far as a watch told of them: with a claim, or with a device that no rule weighs."""
    days = {document["reason"] for (text,) in query(ledger, UNACCOUNTED) for document in [json.loads(text)]}
    assert days <= {"claim", "unknown_device"}
    assert {value for name, value in latest.items() if name.startswith("gputally_unaccounted_gpu_pods")} == {0}


async def replayed_with_chaos(trace: Path, scratch: Path, speed: int) -> tuple[Observed, Chaos, list[Samples]]:
    """Faults end with the trace, so that the product can observe everything that is still observable."""
    async with (
        SimCluster(seed=1, speed=speed, start_us=MONDAY_US, bookmark_s=0.5) as cluster,
        aggregating(cluster, scratch) as running,
    ):
        await until(lambda: not running.ready().missing)
        observed = Observed(cluster)
        replay = Replay(cluster.registry, read_trace(trace))
        replay.begin()
        chaos = cluster.simulation.cause_chaos(every_us=int(EVERY_REAL_SECONDS * speed * SECOND))
        chaos.do("reboot")
        scrapes = await scraped_meanwhile(replay, running)
        chaos.end()
        await caught_up(cluster, running)
        url = f"http://{running.addresses[0]}"
        return observed, chaos, [*scrapes, await scrape(url), await scrape(url)]


def assert_rows_are_observed(rows: list[Row], observed: Observed, *, but: set[str]) -> None:
    """The API reports what the trace says, except on nodes in `but`: wrong clock, or missed deletion."""
    assert observed.lives.keys() == {row.name for row in rows}
    for row in rows:
        life = observed.lives[row.name]
        assert life.node in but or life.end_us - life.start_us == (row.end - row.start) * SECOND, row


def assert_accounted(ledger: Path, rows: list[Row], observed: Observed, *, lag_us: int) -> None:
    """Exact to the second, or a gap that contains the true end. `lag_us` is the simulated time per real second.

    A node's wrong clock may be trusted or corrected: the error is at most the largest error of the clock.
    """
    milli = {row.name: row.milli for row in rows}
    exact = set()
    ours = [life for namespace, *life in query(ledger, LIVES) if namespace != NAMESPACE]
    for name, gap_from_us, gap_to_us, time in ours:
        life = observed.lives[name]
        off_us = 2 * MAX_SKEW_S * SECOND if any(life.ahead_us) else 0
        if gap_from_us is None:
            quantity = milli[name] * MICRO_PER_MILLI
            assert abs(time - (life.end_us - life.start_us) * quantity) <= off_us * quantity, name
            exact.add(name)
        else:
            unseen_us = off_us if life.ahead_us[0] != life.ahead_us[1] else OFF_US if off_us else 0
            assert gap_from_us - unseen_us - lag_us < life.true_us <= gap_to_us + unseen_us, name
        del milli[name]
    assert len(exact) > len(rows) / 2, "too many gaps for a meaningful test"
    interruptions = query(ledger, INTERRUPTIONS)
    for life in (observed.lives[name] for name in milli):  # started and ended during an interruption without history
        assert any(a - lag_us < life.start_us <= life.end_us <= b for a, b in interruptions), life


def assert_namesakes_are_accounted(ledger: Path, *, but: set[str]) -> None:
    """Each pod that reused the name of another held its one GPU for its one second."""
    if REBORN not in but:
        times = [time for _, name, gap_us, _, time in query(ledger, LIVES) if name == REBORN and gap_us is None]
        assert times == [GPU_SECOND] * len(times)


def assert_rejected_are_accounted(ledger: Path, observed: Observed, *, lag_us: int) -> None:
    """Each pod that initialized on its GPU, until its kubelet rejected it, held that GPU so long, or ended in a gap."""
    found = query(ledger, REJECTED)
    assert observed.rejected
    assert {uid for uid, *_ in found} <= observed.rejected.keys()
    for uid, start_us, end_us, gap_to_us in found:
        bound_us, rejected_us = observed.rejected[uid]
        assert start_us == bound_us
        assert end_us - lag_us < rejected_us
        assert rejected_us <= (end_us if gap_to_us is None else gap_to_us) + lag_us
