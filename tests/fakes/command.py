"""The program as a process of its own."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import aiohttp

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 20
"""No test waits this long; it turns a hang into a failure."""
Samples = dict[str, float]


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


async def start(
    *arguments: str | Path, home: Path = Path("/nonexistent"), environment: Mapping[str, str] | None = None
) -> Process:
    """Start `gputally ARGUMENTS` for a user at `home`, out of any cluster, with more of an `environment`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUTALLY_", "KUBE"))}
    command = (sys.executable, "-m", "gputally", *map(str, arguments))
    return await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=PIPE, cwd=ROOT, env=kept | {"HOME": str(home)} | dict(environment or {})
    )


async def done(process: Process) -> Done:
    """Wait for its end."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


async def run(*arguments: str | Path) -> Done:
    """Start it and wait for its end."""
    return await done(await start(*arguments))


async def get(url: str) -> tuple[int, str]:
    """Status and text; 0 while nobody listens."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()
    except aiohttp.ClientError:
        return 0, ""


async def until_ready(url: str, process: Process) -> None:
    """Until /readyz says so; a process that ended instead is a failure."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await get(f"{url}/readyz"))[0] != 200:
            assert process.returncode is None, (await done(process)).err
            await asyncio.sleep(0.02)


async def scrape(url: str) -> Samples:
    """All samples by name and labels as they are written."""
    status, text = await get(f"{url}/metrics")
    assert status == 200
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
    }


def fallen(before: Samples, after: Samples) -> list[str]:
    """Counters of the fleet that are lower than before, or missing."""
    ours = ("watch", "ledger", "skipped", "label", "agent", "usage_faults")
    own = (*(f"gputally_{name}" for name in ours), "process_", "python_")
    counters = (name for name in before if name.partition("{")[0].endswith("_total") and not name.startswith(own))
    return [f"{name}: {before[name]} -> {after.get(name)}" for name in counters if after.get(name, -1) < before[name]]


def sum_of(samples: Samples, name: str) -> float:
    """Over all series of one name."""
    return sum(value for sample, value in samples.items() if sample.partition("{")[0] == name)
