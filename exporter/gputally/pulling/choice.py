"""How agents are reached, as the operator chose."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from gputally.model.agent_pod import AgentPod
from gputally.model.rules import MigBasis


class Target(NamedTuple):
    """An agent to be pulled: the node it is to tell of, and the URL it answers at."""

    node: str
    url: str


@dataclass(frozen=True, kw_only=True)
class AgentChoice:
    """Agents that are found answer on `port`, by HTTPS once `authority` or `certificate` is named; `urls` are more.

    Files hold PEM, that of the token one line. None of them means: without. `mig_basis` is by what they are to weigh.
    """

    port: int = 9837
    interval_s: int = 10
    token: Path | None = None
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    urls: tuple[Target, ...] = ()
    mig_basis: MigBasis = MigBasis.COMPUTE

    @property
    def scheme(self) -> str:
        """How agents that are found are spoken to."""
        return "https" if self.authority or self.certificate else "http"

    def targets(self, found: Mapping[str, AgentPod]) -> list[Target]:
        """One for each node: a URL that was named wins. A pod's address that is none is not asked."""
        named = {target.node for target in self.urls}
        hosts = {node: _host(pod.address) for node, pod in found.items() if node not in named}
        return [
            *self.urls,
            *(Target(node, f"{self.scheme}://{host}:{self.port}") for node, host in hosts.items() if host),
        ]


def _host(address: str) -> str:
    """As it stands in a URL; "" for what is no IP address, and for one that needs a zone."""
    try:
        ip = ip_address(address)
    except ValueError:
        return ""
    if isinstance(ip, IPv6Address):
        return "" if ip.scope_id else f"[{ip}]"
    return str(ip)
