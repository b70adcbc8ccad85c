"""One server process of the control plane."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import aiohttp

LEASH = Path(__file__).with_name("leashed.py")
LAST_LINES = 25
PROBE_TIMEOUT = aiohttp.ClientTimeout(total=2)


class ComponentFailed(Exception):
    """A server died or did not become ready; the message ends with the end of its log."""


class Component:
    """A server that reports readiness at the URL `health` and writes to `log`, also across restarts."""

    def __init__(self, command: Sequence[str], *, log: Path, health: str) -> None:
        self.name = Path(command[0]).name
        self.command = command
        self.log = log
        self.health = health
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start the process; it is not ready yet."""
        assert self.process is None, f"{self.name} is running"
        command = [sys.executable, "-I", str(LEASH), *self.command]
        with self.log.open("ab") as log:
            # A separate session: Ctrl-C reaches only the tests, which then stop their servers.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self) -> None:
        """Send SIGKILL: after SIGTERM a kube-apiserver serves for another minute. Ignores a dead process."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    async def ready(self, *, within: float = 60) -> None:
        """Wait until the server is ready; raises ComponentFailed if it dies or after `within` seconds."""
        try:
            async with asyncio.timeout(within), aiohttp.ClientSession(timeout=PROBE_TIMEOUT) as session:
                while not await answers_ok(session, self.health):
                    self.check_alive()
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise ComponentFailed(f"{self.name} is not ready after {within} s\n{self.log_tail()}") from None

    def check_alive(self) -> None:
        status = self.process.poll() if self.process else -1
        if status is not None:
            raise ComponentFailed(f"{self.name} has ended with status {status}\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The end of the log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- end of {self.log}", *lines[-LAST_LINES:]])


async def answers_ok(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url, ssl=False) as response:  # self-signed, on loopback
            return response.status == 200
    except (aiohttp.ClientError, OSError):
        return False
