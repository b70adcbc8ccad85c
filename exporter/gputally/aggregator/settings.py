"""All settings of the aggregator: one table, from which flags, environment variables and help derive."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gputally.errors import ConfigError
from gputally.model.rules import AgentMarks
from gputally.pulling.choice import AgentChoice, Target
from gputally.setting import (
    Setting,
    addresses,
    beyond,
    file,
    lonely_key,
    missing,
    no_addresses,
    no_pairs,
    no_port,
    no_urls,
    not_a_number,
    pairs,
    unknown,
)

DEFAULT_ADDRESS: Final = ":9836"


SETTINGS: Final = (
    Setting("config.file", "", "FILE", "tiers, tenants, resources and limits (YAML); without it each PriorityClass is "
            "a tier and each namespace a tenant"),
    Setting("prices.file", "", "FILE", "price book (YAML); without it nothing is priced and no cost is exported"),
    Setting("ledger", "gputally.db", "FILE", "SQLite ledger, as a path or sqlite:///PATH, created if missing; one "
            "process and one cluster each"),
    Setting("kubeconfig", "", "FILE", "kubeconfig; otherwise KUBECONFIG, ~/.kube/config, or the pod's service account"),
    Setting("context", "", "NAME", "context of the kubeconfig; otherwise its current one"),
    Setting("api.patience", "15", "SECONDS", "how long to wait at the start for an API server that does not answer"),
    Setting("web.listen-address", DEFAULT_ADDRESS, "HOST:PORT", "where to serve /metrics; separate several by commas"),
    Setting("web.config.file", "", "FILE", "TLS, users and headers (YAML, as in Prometheus' exporter-toolkit), read "
            "again when it changes; without it everyone is answered, without encryption"),
    Setting("web.max-requests", "40", "N", "simultaneous scrapes; further ones are answered 503"),
    Setting("metrics.zero-seconds", "120", "SECONDS", "for how long a new series is exported as 0, so that every "
            "Prometheus sees it begin: some four times the interval of scrapes; 0 to show values at once"),
    Setting("agents.selector", "app.kubernetes.io/name=gputally,app.kubernetes.io/component=agent", "LABELS",
            "labels by which the agents' pods are found; empty to look for none"),
    Setting("agents.namespace", "gputally", "NAME", "namespace of these pods, in which none but trusted people "
            "may create any; empty for all"),
    Setting("agents.port", "9837", "PORT", "port of the agents that are found"),
    Setting("agents.interval", "10", "SECONDS", "how often each agent is asked what it has measured"),
    Setting("agents.token-file", "", "FILE", "token to show to agents, read again when it changes"),
    Setting("agents.ca-file", "", "FILE", "authority (PEM) that signs the certificates of agents and nothing else; "
            "with it, agents that are found are asked by HTTPS"),
    Setting("agents.cert-file", "", "FILE", "certificate to show to agents (PEM)"),
    Setting("agents.key-file", "", "FILE", "key of that certificate (PEM); otherwise it is in the same file"),
    Setting("agents.urls", "", "NODE=URL", "agents beside those that are found; separate several by commas"),
    Setting("log.level", "info", "LEVEL", "debug, info, warning or error"),
    Setting("log.format", "text", "FORMAT", "text or json"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one aggregator, checked. `config` and `prices` are None when the defaults apply."""

    config: Path | None
    prices: Path | None
    ledger: str
    kubeconfig: str = ""
    context: str = ""
    api_patience_s: int = 15
    addresses: tuple[str, ...] = (DEFAULT_ADDRESS,)
    web_config: Path | None = None
    max_requests: int = 40
    zero_s: int = 120
    agent_marks: AgentMarks = field(default_factory=AgentMarks)
    agents: AgentChoice = field(default_factory=AgentChoice)
    log_level: str = "info"
    log_format: str = "text"


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Parsed flags, by setting name, as Settings. Raises: ConfigError with all that is wrong with them."""
    problems = [
        *missing(values, "ledger"),
        *not_a_number(values, "api.patience"),
        *no_addresses(values, "web.listen-address"),
        *not_a_number(values, "web.max-requests"),
        *beyond(values, "metrics.zero-seconds", 86_400, "", least=0),
        *no_pairs(values, "agents.selector", "KEY=VALUE"),
        *no_port(values, "agents.port"),
        *not_a_number(values, "agents.interval"),
        *lonely_key(values),
        *no_pairs(values, "agents.urls", "NODE=URL"),
        *no_urls(values, "agents.urls"),
        *unknown(values, "log.level", ("debug", "info", "warning", "error")),
        *unknown(values, "log.format", ("text", "json")),
    ]
    if problems:
        raise ConfigError(problems)
    return Settings(
        config=file(values["config.file"]),
        prices=file(values["prices.file"]),
        ledger=values["ledger"],
        kubeconfig=values["kubeconfig"],
        context=values["context"],
        api_patience_s=int(values["api.patience"]),
        addresses=addresses(values["web.listen-address"]),
        web_config=file(values["web.config.file"]),
        max_requests=int(values["web.max-requests"]),
        zero_s=int(values["metrics.zero-seconds"]),
        agent_marks=AgentMarks(namespace=values["agents.namespace"], labels=pairs(values["agents.selector"])),
        agents=_agents(values),
        log_level=values["log.level"],
        log_format=values["log.format"],
    )


def _agents(values: Mapping[str, Any]) -> AgentChoice:
    return AgentChoice(
        port=int(values["agents.port"]),
        interval_s=int(values["agents.interval"]),
        token=file(values["agents.token-file"]),
        authority=file(values["agents.ca-file"]),
        certificate=file(values["agents.cert-file"]),
        key=file(values["agents.key-file"]),
        urls=tuple(Target(node, url.rstrip("/")) for node, url in pairs(values["agents.urls"])),
    )
