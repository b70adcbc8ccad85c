"""`/api/v1/allocations`, and `gputally top` on it."""

import asyncio
import os
import pty
import sys

import msgspec

from gputally.aggregator.settings import Settings
from gputally.model.api.allocations import AllocationsDocument
from gputally.model.api.at_risk import AtRiskDocument
from gputally.model.api.paths import ALLOCATIONS_PATH, AT_RISK_PATH
from gputally_sim.cluster import SimCluster
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import Samples, get, run, scrape, sum_of
from tests.fakes.until import until


async def test_the_document_agrees_with_the_metrics(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        status, text = await get(f"{url}{ALLOCATIONS_PATH}")
        samples = await scrape(url)

    found = msgspec.json.decode(text, type=AllocationsDocument)
    assert status == 200
    assert sum(pod.gpus for pod in found.pods if pod.state != "pending") == sum_of(samples, "gputally_allocated_gpus")
    assert found.nodes
    assert sum(sum(node.gpus.values()) for node in found.nodes) == sum_of(samples, "gputally_capacity_gpus")
    assert "inference-critical" in {pod.tier for pod in found.pods}
    assert found.currency == ""


async def test_parameters_filter_pods_and_unknown_ones_are_named(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        _, everything = await get(f"{url}{ALLOCATIONS_PATH}")
        pods = msgspec.json.decode(everything, type=AllocationsDocument).pods
        chosen = pods[0]
        _, some = await get(f"{url}{ALLOCATIONS_PATH}?tier={chosen.tier}&node={chosen.node}")
        status, text = await get(f"{url}{ALLOCATIONS_PATH}?teir=a")

    expected = {pod.uid for pod in pods if (pod.tier, pod.node) == (chosen.tier, chosen.node)}
    assert {pod.uid for pod in msgspec.json.decode(some, type=AllocationsDocument).pods} == expected
    assert (status, text) == (400, "unknown parameter teir; use namespace, tier, tenant, node, state\n")


def at_risk(samples: Samples) -> float:
    """GPU-seconds at risk of pods that serve no users."""
    name = "gputally_work_at_risk_gpu_seconds"
    return sum_of(samples, name) - sum_of(samples, name, 'tier="inference-')


async def test_the_work_at_risk_by_job_and_by_node_agrees_with_the_metrics(
    settings: Settings, cluster: SimCluster
) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        accountant, clock = running.pipeline.accountant, cluster.clock
        await until(lambda: any(accountant.read_risk(now_us=clock.now_us()).running.at_risk()))
        before = at_risk(await scrape(url))
        _, text = await get(f"{url}{AT_RISK_PATH}")
        after = at_risk(await scrape(url))
        _, some = await get(f"{url}{AT_RISK_PATH}?job=no-such-job")
        status, problem = await get(f"{url}{AT_RISK_PATH}?teir=a")

    found, none = (msgspec.json.decode(each, type=AtRiskDocument) for each in (text, some))
    assert found.total
    for rows in (found.jobs, found.nodes):
        assert before <= sum(row.risk.gpu_hours for row in rows) * 3600 <= after
    assert (none.total, none.jobs, none.nodes) == (None, [], [])
    assert (status, problem) == (400, "unknown parameter teir; use namespace, tier, tenant, job_kind, job, node\n")


async def test_top_prints_one_table_into_a_pipe(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        found = await run("top", "--url", url, "--by", "node")

    lines = found.out.splitlines()
    assert (found.status, found.err) == (0, "")
    assert lines[0] == "GPUs     8: 8 allocated"
    assert lines[3].split()[:3] == ["NODE", "PODS", "GPUS"]


async def test_top_on_a_terminal_follows_keys_until_q(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        theirs, ours = pty.openpty()
        os.set_blocking(theirs, False)
        command = (sys.executable, "-m", "gputally", "top", "--url", url)
        size = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
        process = await asyncio.create_subprocess_exec(*command, stdin=ours, stdout=ours, env=os.environ | size)
        os.close(ours)
        try:
            await _until_shown(theirs, b"TIER")
            os.write(theirs, b"j")
            await _until_shown(theirs, b"JOB")
            os.write(theirs, b"q")
            async with asyncio.timeout(10):
                assert await process.wait() == 0
        finally:
            os.close(theirs)


async def _until_shown(terminal: int, text: bytes) -> None:
    """Read what the terminal shows until it contains the text."""
    shown, loop = b"", asyncio.get_running_loop()
    async with asyncio.timeout(20):
        while text not in shown:
            readable = asyncio.Event()
            loop.add_reader(terminal, readable.set)
            try:
                await readable.wait()
            finally:
                loop.remove_reader(terminal)
            shown += os.read(terminal, 65_536)
