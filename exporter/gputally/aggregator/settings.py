"""All settings of the aggregator: the source of flags, environment variables and help."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gputally.errors import ConfigError, Problem
from gputally.model.kube.kinds import OPTIONAL_RESOURCES
from gputally.model.price import JOB_COST_CURRENCY
from gputally.model.rules import AgentMarks, MigBasis
from gputally.model.units import US_PER_DAY, US_PER_SECOND, seconds_of
from gputally.model.usage import AgentPod, UsageCursor
from gputally.process.settings import (
    Setting,
    addresses,
    entries,
    file,
    key_without_certificate,
    missing,
    no_addresses,
    no_pairs,
    no_port,
    no_url,
    no_urls,
    not_a_number,
    outside_range,
    pairs,
    unknown,
    unknown_entries,
)

if TYPE_CHECKING:
    from gputally.accounting.prices.book import PriceBook

DEFAULT_ADDRESS: Final = ":9836"
LEAST_RETENTION_DAYS: Final = 62
"""This month and the last one, on any day and in any time zone."""
SETTINGS: Final = (
    Setting("config.file", "", "FILE", "tiers, tenants, resources, limits and budgets (YAML); without it, each "
            "PriorityClass is a tier and each namespace a tenant"),
    Setting("prices.file", "", "FILE", "price book (YAML); without it, no cost is calculated or exported"),
    Setting("ledger", "gputally.db", "FILE", "SQLite ledger, as a path or sqlite:///PATH, created if missing; use "
            "one ledger per process and cluster"),
    Setting("ledger.retention", "", "DURATION", "how long to keep single allocations, at least 62d, e.g. 400d; "
            "older ones are rolled up into daily rows with the same sums; empty keeps all"),
    Setting("kubeconfig", "", "FILE", "kubeconfig; default is KUBECONFIG, ~/.kube/config or the pod's service account"),
    Setting("context", "", "NAME", "context of the kubeconfig; default is its current context"),
    Setting("api.patience", "15", "SECONDS", "how long to wait at startup for an API server that does not respond"),
    Setting("watch", "", "RESOURCES", "resources to watch in addition, each of which needs list and watch, separated "
            f"by commas: {', '.join(OPTIONAL_RESOURCES)}"),
    Setting("web.listen-address", DEFAULT_ADDRESS, "HOST:PORT", "addresses that serve /metrics, separated by commas"),
    Setting("web.config.file", "", "FILE", "TLS, users and headers (YAML, as in Prometheus' exporter-toolkit), "
            "reloaded on change; without it, neither authentication nor encryption"),
    Setting(
        "web.max-requests",
        "40",
        "N",
        "maximum concurrent scrapes; others wait, and a client with this many of its own gets 429",
    ),
    Setting("web.grafana-url", "", "URL", "URL of Grafana, for links from the status page to the dashboards"),
    Setting("metrics.zero-seconds", "120", "SECONDS", "how long a new series is exported as 0, so that every "
            "Prometheus scrapes its start: use about four scrape intervals, or 0 to export values at once"),
    Setting("metrics.pods", "on", "on|off", "serve /metrics/pods: tier, tenant, job and GPUs of each pod, and the "
            "capacity of each node"),
    Setting("metrics.training-job-cost", "off", "on|off", "serve training_job_cost_usd on /metrics/pods: the cost "
            "so far of each job, up to 1,000 series; needs a price book in USD"),
    Setting("pending.reasons", "on", "on|off", "explain why pods wait for GPUs; keeps what all pods take from nodes "
            "with GPUs, some 0.2 kB for each of these pods"),
    Setting("agents.selector", "app.kubernetes.io/name=gputally,app.kubernetes.io/component=agent", "LABELS",
            "labels that select the agent pods; empty to select none"),
    Setting("agents.namespace", "gputally", "NAME", "namespace of the agent pods, in which only trusted people "
            "may create pods; empty for all namespaces"),
    Setting("agents.port", "9837", "PORT", "port of the discovered agents"),
    Setting("agents.interval", "10", "SECONDS", "how often the measurements of each agent are pulled"),
    Setting("agents.token-file", "", "FILE", "bearer token to send to agents, reloaded on change"),
    Setting("agents.ca-file", "", "FILE", "CA certificate (PEM) that signs the certificates of agents and nothing "
            "else; with it, discovered agents are pulled by HTTPS"),
    Setting("agents.cert-file", "", "FILE", "client certificate to present to agents (PEM)"),
    Setting("agents.key-file", "", "FILE", "key of the client certificate (PEM); default is the certificate's file"),
    Setting("agents.urls", "", "NODE=URL", "agents in addition to the discovered ones, separated by commas"),
    Setting("preemption-webhook-url-file", "", "FILE", "file with the URL of a webhook that gets a record of each "
            "preemption of a job, reloaded on change; without it, nothing is posted"),
    Setting("log.level", "info", "LEVEL", "debug, info, warning or error"),
    Setting("log.format", "text", "FORMAT", "text or json"),
)  # fmt: skip
_CHOICES: Final = {
    "metrics.pods": ("on", "off"),
    "metrics.training-job-cost": ("on", "off"),
    "pending.reasons": ("on", "off"),
    "log.level": ("debug", "info", "warning", "error"),
    "log.format": ("text", "json"),
}


class Target(NamedTuple):
    """An agent to pull: its node and base URL, and the last of its reports that is accounted, if any is."""

    node: str
    url: str
    since: UsageCursor | None = None


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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The validated settings of an aggregator. `config` and `prices` are None if the defaults apply."""

    config: Path | None
    prices: Path | None
    ledger: str
    retention_days: int | None = None
    kubeconfig: str = ""
    context: str = ""
    api_patience_s: int = 15
    watched: tuple[str, ...] = ()
    addresses: tuple[str, ...] = (DEFAULT_ADDRESS,)
    web_config: Path | None = None
    max_requests: int = 40
    grafana: str = ""
    zero_s: int = 120
    pod_metrics: bool = True
    training_job_cost: bool = False
    explains_waits: bool = True
    agent_marks: AgentMarks = field(default_factory=AgentMarks)
    agents: AgentOptions = field(default_factory=AgentOptions)
    budgets_interval_s: float = 300.0
    preemption_webhook: Path | None = None
    log_level: str = "info"
    log_format: str = "text"


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Parsed flags, by setting name, as Settings. Raises: ConfigError with all problems."""
    if problems := _problems(values):
        raise ConfigError(problems)
    return Settings(
        config=file(values["config.file"]),
        prices=file(values["prices.file"]),
        ledger=values["ledger"],
        retention_days=_days(values["ledger.retention"]),
        kubeconfig=values["kubeconfig"],
        context=values["context"],
        api_patience_s=int(values["api.patience"]),
        watched=entries(values["watch"]),
        addresses=addresses(values["web.listen-address"]),
        web_config=file(values["web.config.file"]),
        max_requests=int(values["web.max-requests"]),
        grafana=values["web.grafana-url"].rstrip("/"),
        zero_s=int(values["metrics.zero-seconds"]),
        pod_metrics=values["metrics.pods"] == "on",
        training_job_cost=values["metrics.training-job-cost"] == "on",
        explains_waits=values["pending.reasons"] == "on",
        agent_marks=AgentMarks(namespace=values["agents.namespace"], labels=pairs(values["agents.selector"])),
        agents=_agents(values),
        preemption_webhook=file(values["preemption-webhook-url-file"]),
        log_level=values["log.level"],
        log_format=values["log.format"],
    )


def _problems(values: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the flags."""
    return [
        *_no_ledger(values),
        *not_a_number(values, "api.patience"),
        *unknown_entries(values, "watch", OPTIONAL_RESOURCES),
        *no_addresses(values, "web.listen-address"),
        *not_a_number(values, "web.max-requests"),
        *no_url(values, "web.grafana-url"),
        *outside_range(values, "metrics.zero-seconds", 86_400, "", least=0),
        *_no_job_cost(values),
        *no_pairs(values, "agents.selector", "KEY=VALUE"),
        *no_port(values, "agents.port"),
        *not_a_number(values, "agents.interval"),
        *key_without_certificate(values),
        *no_pairs(values, "agents.urls", "NODE=URL"),
        *no_urls(values, "agents.urls"),
        *(problem for name, choices in _CHOICES.items() for problem in unknown(values, name, choices)),
    ]


def _days(text: str) -> int | None:
    """The whole days of a duration such as 400d, 60w or 2y; None if it is empty or not valid."""
    found_s = seconds_of(text)
    return None if found_s is None else found_s * US_PER_SECOND // US_PER_DAY


def _no_ledger(values: Mapping[str, Any]) -> list[Problem]:
    """There is no file, or the retention is neither empty nor a sufficient duration."""
    problems, text = missing(values, "ledger"), values["ledger.retention"]
    days = _days(text)
    if not text or (days and days >= LEAST_RETENTION_DAYS):
        return problems
    problem = "is too short" if days is not None else "is not a duration"
    least = f"use {LEAST_RETENTION_DAYS}d or more, such as 400d, so that the last month always has all details"
    return [*problems, Problem("", "--ledger.retention", f"'{text}' {problem}; {least}")]


def _no_job_cost(values: Mapping[str, Any]) -> Iterator[Problem]:
    """What is missing to export the cost of jobs."""
    if values["metrics.training-job-cost"] == "on":
        if not values["prices.file"]:
            yield Problem("", "--metrics.training-job-cost", "needs a price book in USD; set --prices.file")
        if values["metrics.pods"] == "off":
            yield Problem("", "--metrics.training-job-cost", "is served on /metrics/pods; remove --metrics.pods=off")


def require_usd(settings: Settings, book: "PriceBook | None") -> None:
    """Raises: ConfigError if the cost of jobs is to be exported and the price book has another currency."""
    if settings.training_job_cost and book and book.currency != JOB_COST_CURRENCY:
        text = f"needs a price book in USD; {settings.prices} is in {book.currency}"
        raise ConfigError([Problem("", "--metrics.training-job-cost", text)])


def _agents(values: Mapping[str, Any]) -> AgentOptions:
    return AgentOptions(
        port=int(values["agents.port"]),
        interval_s=int(values["agents.interval"]),
        token=file(values["agents.token-file"]),
        authority=file(values["agents.ca-file"]),
        certificate=file(values["agents.cert-file"]),
        key=file(values["agents.key-file"]),
        urls=tuple(Target(node, url.rstrip("/")) for node, url in pairs(values["agents.urls"])),
    )
