"""Runs the program as a separate process."""

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
"""A timeout that only a hanging test reaches."""
Samples = dict[str, float]


class Done(NamedTuple):
    """The result of a command."""

    status: int
    out: str
    err: str


async def start(
    *arguments: str | Path, home: Path = Path("/nonexistent"), environment: Mapping[str, str] | None = None
) -> Process:
    """Start `gputally ARGUMENTS` with this home and extra environment variables, outside any cluster."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUTALLY_", "KUBE"))}
    command = (sys.executable, "-m", "gputally", *map(str, arguments))
    return await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=PIPE, cwd=ROOT, env=kept | {"HOME": str(home)} | dict(environment or {})
    )


async def done(process: Process) -> Done:
    """Wait until the process has ended."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), err.decode())


async def run(*arguments: str | Path) -> Done:
    """Run `gputally ARGUMENTS` until it has ended."""
    return await done(await start(*arguments))


async def get(url: str) -> tuple[int, str]:
    """Status and text of the response; status 0 if the connection fails."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return response.status, await response.text()
    except aiohttp.ClientError:
        return 0, ""


async def until_ready(url: str, process: Process) -> None:
    """Wait for /readyz; fails if the process ends first."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await get(f"{url}/readyz"))[0] != 200:
            assert process.returncode is None, (await done(process)).err
            await asyncio.sleep(0.02)


async def scrape(url: str, path: str = "/metrics") -> Samples:
    """All samples, by name with labels as exposed."""
    status, text = await get(f"{url}{path}")
    assert status == 200
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
    }


def fallen(before: Samples, after: Samples) -> list[str]:
    """Fleet counters that decreased or disappeared."""
    ours = ("watch", "ledger", "skipped", "label", "agent", "usage_faults")
    own = (*(f"gputally_{name}" for name in ours), "process_", "python_")
    counters = (name for name in before if name.partition("{")[0].endswith("_total") and not name.startswith(own))
    return [f"{name}: {before[name]} -> {after.get(name)}" for name in counters if after.get(name, -1) < before[name]]


def sum_of(samples: Samples, name: str, label: str = "") -> float:
    """The sum over the series of one metric, with a label such as `state="free"`."""
    return sum(value for sample, value in samples.items() if sample.partition("{")[0] == name and label in sample)
