"""Configured connection to agents: port, credentials and static targets."""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from gputally.model.rules import MigBasis
from gputally.model.usage import AgentPod


class Target(NamedTuple):
    """An agent to pull: its node and base URL."""

    node: str
    url: str


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """Discovered agents are pulled on `port`, over HTTPS if `authority` or `certificate` is set. `urls` are static.

    Files are PEM, except the one-line `token`; None means not configured. `mig_basis` is the basis that agents must
    use for the weights of MIG devices.
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
        """URL scheme of discovered agents."""
        return "https" if self.authority or self.certificate else "http"

    def targets(self, found: Mapping[str, AgentPod]) -> list[Target]:
        """One target per node; static URLs take precedence. Pods with invalid addresses are skipped."""
        static = {target.node for target in self.urls}
        hosts = {node: _host(pod.address) for node, pod in found.items() if node not in static}
        return [
            *self.urls,
            *(Target(node, f"{self.scheme}://{host}:{self.port}") for node, host in hosts.items() if host),
        ]


def _host(address: str) -> str:
    """The IP address as the host of a URL; "" if it is invalid, or IPv6 with a zone."""
    try:
        ip = ip_address(address)
    except ValueError:
        return ""
    if isinstance(ip, IPv6Address):
        return "" if ip.scope_id else f"[{ip}]"
    return str(ip)
