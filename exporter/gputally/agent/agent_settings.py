"""All settings of the agent: one table defines flags, environment variables and help texts."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gputally.errors import ConfigError
from gputally.process.settings import (
    Setting,
    addresses,
    file,
    missing,
    no_addresses,
    not_a_number,
    outside_range,
    unknown,
)

DEFAULT_ADDRESS: Final = ":9837"
KUBELET: Final = "/var/lib/kubelet/pod-resources/kubelet.sock"

SETTINGS: Final = (
    Setting("node", "", "NAME", "name of this node in the cluster; default is NODE_NAME or the host name"),
    Setting("config.file", "", "FILE", "the aggregator's configuration (YAML), of which the agent uses `mig` and "
            "`resources`; without it, MIG devices are weighted by compute"),
    Setting("interval", "1", "SECONDS", "how often to read GPUs and poll the kubelet, at most 5"),
    Setting("kubelet.socket", KUBELET, "PATH", "PodResources socket of the kubelet"),
    Setting("kubelet.resources", "", "NAMES", "resources that are GPUs in addition to nvidia.com/gpu, "
            "nvidia.com/gpu.shared and nvidia.com/mig-..., separated by commas"),
    Setting("host.proc", "/proc", "PATH", "the node's /proc, where the cgroup of a process names its pod; the agent "
            "needs hostPID"),
    Setting("host.pod-logs", "/var/log/pods", "PATH", "directory of the pod logs, whose names contain the pods' "
            "UIDs; without it, usage of shared GPUs is split by share"),
    Setting("journal", "6", "HOURS", "how long the usage of ended containers stays available to pull"),
    Setting("web.listen-address", DEFAULT_ADDRESS, "HOST:PORT", "addresses that serve /metrics and /v1/usage, "
            "separated by commas"),
    Setting("web.config.file", "", "FILE", "TLS, users and headers (YAML, as in Prometheus' exporter-toolkit), "
            "reloaded on change; without it, neither authentication nor encryption"),
    Setting(
        "web.max-requests",
        "40",
        "N",
        "maximum concurrent scrapes; others wait, and a client with this many of its own gets 429",
    ),
    Setting("usage.token-file", "", "FILE", "bearer token that /v1/usage requires, reloaded on change; without it, "
            "/v1/usage requires no token"),
    Setting("log.level", "info", "LEVEL", "debug, info, warning or error"),
    Setting("log.format", "text", "FORMAT", "text or json"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """Validated settings of one agent; files that are not configured are None."""

    node: str
    interval_s: int = 1
    kubelet: str = KUBELET
    config: Path | None = None
    resources: tuple[str, ...] = ()
    proc: Path = Path("/proc")
    pod_logs: str = "/var/log/pods"
    journal_h: int = 6
    addresses: tuple[str, ...] = (DEFAULT_ADDRESS,)
    web_config: Path | None = None
    max_requests: int = 40
    token: Path | None = None
    log_level: str = "info"
    log_format: str = "text"


def agent_settings_from(values: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> AgentSettings:
    """Convert parsed flags, by setting name. Raises: ConfigError that lists all invalid values."""
    problems = [
        *outside_range(values, "interval", 5, ": allocations from the kubelet are valid for 10 s"),
        *missing(values, "kubelet.socket"),
        *missing(values, "host.proc"),
        *outside_range(values, "journal", 72, ""),
        *no_addresses(values, "web.listen-address"),
        *not_a_number(values, "web.max-requests"),
        *unknown(values, "log.level", ("debug", "info", "warning", "error")),
        *unknown(values, "log.format", ("text", "json")),
    ]
    if problems:
        raise ConfigError(problems)
    return AgentSettings(
        node=values["node"] or environment.get("NODE_NAME", "") or socket.gethostname(),
        config=file(values["config.file"]),
        interval_s=int(values["interval"]),
        kubelet=values["kubelet.socket"],
        resources=tuple(name.strip() for name in values["kubelet.resources"].split(",") if name.strip()),
        proc=Path(values["host.proc"]),
        pod_logs=values["host.pod-logs"],
        journal_h=int(values["journal"]),
        addresses=addresses(values["web.listen-address"]),
        web_config=file(values["web.config.file"]),
        max_requests=int(values["web.max-requests"]),
        token=file(values["usage.token-file"]),
        log_level=values["log.level"],
        log_format=values["log.format"],
    )
