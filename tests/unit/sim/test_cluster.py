import asyncio

import aiohttp
import pytest

from gputally_sim.clock import SimClock
from gputally_sim.cluster import SimCluster
from gputally_sim.instants import HOUR_US, MINUTE_US
from gputally_sim.simulation import Simulation
from tests.unit.sim.kube import PATIENCE_S, PODS, serving
from tests.unit.sim.world import START_US, add, pod, read, seconds


def test_the_clock_runs_forward_from_its_start() -> None:
    clock = SimClock(START_US, speed=1000)

    first, second = clock.now_us(), clock.now_us()

    assert START_US <= first <= second


def test_a_clock_cannot_stand_still() -> None:
    with pytest.raises(ValueError, match="speed 0 must be above 0"):
        SimClock(START_US, speed=0)


async def test_sleeping_until_an_instant_ends_after_it() -> None:
    clock = SimClock(START_US, speed=1000)

    await clock.sleep_until(START_US + seconds(5))

    assert clock.now_us() >= START_US + seconds(5)


async def reached(cluster: SimCluster, us: int) -> None:
    """Return when the model has got to `us`."""
    done = asyncio.Event()
    cluster.simulation.agenda.at(us, done.set)
    async with asyncio.timeout(PATIENCE_S):
        await done.wait()


async def test_pods_created_over_http_live_as_their_annotations_say() -> None:
    async with serving(speed=1000) as (cluster, kube):
        async with kube.watch(PODS, resourceVersion=str(cluster.store.version)) as lines:
            created = await kube.post(PODS, pod("a", starts_after_us=seconds(5), lasts_us=seconds(30)))

            line = await lines.next()
            while line["object"]["status"]["phase"] != "Succeeded":
                line = await lines.next()

        assert line["object"]["metadata"]["uid"] == created["metadata"]["uid"]
        ran = line["object"]["status"]["containerStatuses"][0]["state"]["terminated"]
        assert _seconds_of(ran["finishedAt"]) - _seconds_of(ran["startedAt"]) in (29, 30, 31)


def _seconds_of(text: str) -> int:
    minutes, secs = text.removesuffix("Z").split(":")[1:]
    return int(minutes) * 60 + int(secs)


async def test_a_request_happens_at_the_time_of_the_clock() -> None:
    async with serving(nodes=0, speed=3600) as (cluster, kube):
        await cluster.clock.sleep_until(START_US + MINUTE_US)

        created = await kube.post(PODS, pod("a"))

        assert created["metadata"]["creationTimestamp"] >= "2026-03-02T06:01:00Z"


async def test_the_time_of_the_model_is_never_ahead_of_what_has_happened() -> None:
    async with serving(speed=1e6) as (cluster, _):
        agenda = cluster.simulation.agenda
        for second in range(1, 200):
            agenda.at(START_US + seconds(second), lambda: None)
        while due_us := agenda.next_us:
            assert cluster.now_us() <= due_us
            await asyncio.sleep(0)


async def test_the_time_of_the_model_goes_on_when_nothing_happens() -> None:
    async with serving(speed=1e6) as (cluster, _):
        await cluster.clock.sleep_until(START_US + seconds(1000))

        assert cluster.now_us() >= START_US + seconds(1000)


async def test_the_wall_speed_does_not_change_what_a_seed_does() -> None:
    expected: list[bytes] = []
    alone = Simulation(seed=5, start_us=START_US)
    for plural in ("pods", "events", "jobs"):
        alone.store.subscribe(plural, lambda change: expected.append(change.now.body))
    alone.run_scenario("s1")
    alone.run_for(4 * HOUR_US)

    written: list[bytes] = []
    async with SimCluster(seed=5, speed=20_000, start_us=START_US) as cluster:
        for plural in ("pods", "events", "jobs"):
            cluster.store.subscribe(plural, lambda change: written.append(change.now.body))
        cluster.run_scenario("s1")
        await reached(cluster, START_US + 4 * HOUR_US)

    assert len(expected) > 100
    assert written[: len(expected)] == expected


async def test_a_cluster_that_is_left_answers_no_more() -> None:
    async with serving() as (cluster, _):
        url = cluster.url

    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"{url}/readyz")


async def test_an_error_in_the_model_ends_the_cluster_loudly() -> None:
    def fail() -> None:
        raise RuntimeError("a broken action")

    async def wait_in_vain() -> None:
        async with SimCluster(seed=1, start_us=START_US) as cluster:
            cluster.simulation.agenda.after(0, fail)
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as failure:
        await wait_in_vain()

    assert failure.group_contains(RuntimeError, match="a broken action")


async def test_an_error_of_the_caller_comes_out_as_it_is() -> None:
    async def stumble() -> None:
        async with SimCluster(seed=1, start_us=START_US):
            raise LookupError("of the caller")

    with pytest.raises(LookupError, match="of the caller"):
        await stumble()


async def test_open_watches_do_not_hold_up_the_end_of_a_cluster() -> None:
    async with serving(nodes=0) as (cluster, kube):
        add(cluster.simulation, pod("a"))
        async with kube.watch(PODS) as lines:
            await lines.take(1)
            cluster.faults.stall()
            async with asyncio.timeout(PATIENCE_S):
                await cluster.__aexit__(None, None, None)


async def test_a_preemption_plays_out_over_http() -> None:
    async with serving(nodes=1, speed=500) as (cluster, kube):
        async with kube.watch(PODS, resourceVersion=str(cluster.store.version)) as lines:
            await kube.post(PODS, pod("victim", "low", stops_after_us=seconds(8)))
            line = await lines.next()
            while line["object"]["status"]["phase"] != "Running":
                line = await lines.next()
            await kube.post(PODS, pod("preemptor", "high"))
            while (line["object"]["metadata"]["name"], line["object"]["status"]["phase"]) != ("preemptor", "Running"):
                line = await lines.next()

        status, _ = await kube.call("GET", f"{PODS}/victim")
        assert status == 404
        assert read(cluster.simulation, "preemptor")["spec"]["nodeName"] == "n0"
