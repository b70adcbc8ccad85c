"""A run that is killed leaves nothing alive, not even daemons that have left their parents."""

import asyncio
import fcntl
import sys
from pathlib import Path

import pytest

from tests.node.node import eventually

pytestmark = pytest.mark.node

TESTS_WITH_A_DAEMON = """
import signal, sys
from pathlib import Path
from tests.node.enclosure import Enclosure, Inhabitant
scratch, lock = map(Path, sys.argv[1:])
with Enclosure(scratch) as enclosure:
    daemon = ["setsid", "--fork", "flock", str(lock), "sleep", "60"]
    Inhabitant(enclosure, daemon, log=scratch / "log", health="").launch()
    signal.pause()
"""


async def test_what_lives_in_an_enclosure_ends_with_a_test_run_that_is_killed(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    tests = await asyncio.create_subprocess_exec(
        sys.executable, "-c", TESTS_WITH_A_DAEMON, str(tmp_path / "inside"), str(lock)
    )
    await eventually(lambda: not free(lock))

    tests.kill()

    await tests.wait()
    await eventually(lambda: free(lock), within=10)


def free(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
