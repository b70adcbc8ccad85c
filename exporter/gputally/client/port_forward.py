"""Forwards a port to the aggregator of a cluster with kubectl."""

import asyncio
import re
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from gputally.errors import AggregatorUnreachable

_FORWARDING: Final = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d+)")
_PATIENCE_SECONDS: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class Service:
    """The aggregator's Service; an empty context or kubeconfig is kubectl's own choice."""

    namespace: str = "gputally"
    name: str = "gputally-aggregator"
    port: int = 9836
    context: str = ""
    kubeconfig: str = ""

    def arguments(self) -> list[str]:
        """The arguments of kubectl."""
        flags = {"context": self.context, "kubeconfig": self.kubeconfig}
        chosen = [f"--{flag}={value}" for flag, value in flags.items() if value]
        return [*chosen, f"--namespace={self.namespace}", "port-forward", f"service/{self.name}", f":{self.port}"]


@asynccontextmanager
async def forwarded(service: Service, *, program: str = "kubectl") -> AsyncIterator[int]:
    """A local port that leads to the service while the context is open. Raises: AggregatorUnreachable."""
    try:
        process = await asyncio.create_subprocess_exec(
            program, *service.arguments(), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
    except FileNotFoundError:
        text = f"{program} is not installed; install it, or give the aggregator's address: --url http://HOST:9836"
        raise AggregatorUnreachable(text) from None
    try:
        yield await _port(process, service)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _port(process: Process, service: Service) -> int:
    assert process.stdout
    assert process.stderr
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _PATIENCE_SECONDS)
    except TimeoutError:
        line = b""
    if match := _FORWARDING.match(line):
        return int(match[1])
    if process.returncode is None:
        process.terminate()
    lines = (await process.stderr.read()).decode(errors="replace").strip().splitlines() or [line.decode().strip()]
    text = f"kubectl cannot forward a port to service {service.name} in namespace {service.namespace}"
    raise AggregatorUnreachable(f"{text}: {lines[-1] or 'no answer'}; use --namespace and --service, or --url")
