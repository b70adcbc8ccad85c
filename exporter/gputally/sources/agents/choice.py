"""How agents are reached, as the operator chose."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from gputally.model.agent import AgentPod


class Target(NamedTuple):
    """An agent to be pulled: the node it is to tell of, and the URL it answers at."""

    node: str
    url: str


@dataclass(frozen=True, kw_only=True)
class AgentChoice:
    """Agents that are found answer on `port`, by HTTPS once `authority` or `certificate` is named; `urls` are more.

    Files hold PEM, that of the token one line. None of them means: without.
    """

    port: int = 9837
    interval_s: int = 10
    token: Path | None = None
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    urls: tuple[Target, ...] = ()

    @property
    def scheme(self) -> str:
        """How agents that are found are spoken to."""
        return "https" if self.authority or self.certificate else "http"

    def targets(self, found: Mapping[str, AgentPod]) -> list[Target]:
        """One for each node: a URL that was named wins."""
        named = {target.node for target in self.urls}
        return [*self.urls, *(self._target(pod) for node, pod in found.items() if node not in named)]

    def _target(self, pod: AgentPod) -> Target:
        return Target(pod.node, f"{self.scheme}://{_host(pod.address)}:{self.port}")


def _host(address: str) -> str:
    try:
        return f"[{address}]" if isinstance(ip_address(address), IPv6Address) else address
    except ValueError:
        return address
