"""All settings of the aggregator: one table, from which flags, environment variables and help derive."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from gputally.errors import ConfigError, Problem
from gputally.export.listen import parse_all

DEFAULT_ADDRESS: Final = ":9836"


class Setting(NamedTuple):
    """A flag `--name`; the variable GPUTALLY_NAME (dots and dashes as underscores) gives another default."""

    name: str
    default: str
    metavar: str
    help: str


SETTINGS: Final = (
    Setting("config.file", "", "FILE", "tiers, tenants, resources and limits (YAML); without it each PriorityClass is "
            "a tier and each namespace a tenant"),
    Setting("prices.file", "", "FILE", "price book (YAML); without it nothing is priced and no cost is exported"),
    Setting("ledger", "gputally.db", "FILE", "SQLite ledger, created if missing; one process and one cluster each"),
    Setting("kubeconfig", "", "FILE", "kubeconfig; otherwise KUBECONFIG, ~/.kube/config, or the pod's service account"),
    Setting("context", "", "NAME", "context of the kubeconfig; otherwise its current one"),
    Setting("api.patience", "15", "SECONDS", "how long to wait at the start for an API server that does not answer"),
    Setting("web.listen-address", DEFAULT_ADDRESS, "HOST:PORT", "where to serve /metrics; separate several by commas"),
    Setting("web.max-requests", "40", "N", "simultaneous scrapes; further ones are answered 503"),
    Setting("log.level", "info", "LEVEL", "debug, info, warning or error"),
    Setting("log.format", "text", "FORMAT", "text or json"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one aggregator, checked. `config` and `prices` are None when the defaults apply."""

    config: Path | None
    prices: Path | None
    ledger: Path
    kubeconfig: str = ""
    context: str = ""
    api_patience_s: int = 15
    addresses: tuple[str, ...] = (DEFAULT_ADDRESS,)
    max_requests: int = 40
    log_level: str = "info"
    log_format: str = "text"


def add_flags(parser: argparse.ArgumentParser, environment: Mapping[str, str] = os.environ) -> None:
    """One flag for each setting; its default is shown as it stands, the environment included."""
    for setting in SETTINGS:
        default = environment.get(variable(setting.name), setting.default)
        parser.add_argument(
            f"--{setting.name}",
            dest=setting.name,
            default=default,
            metavar=setting.metavar,
            help=f"{setting.help} [{variable(setting.name)}{'; default: %(default)s' if default else ''}]",
        )


def variable(name: str) -> str:
    """The environment variable of a setting: GPUTALLY_WEB_LISTEN_ADDRESS for web.listen-address."""
    return "GPUTALLY_" + name.upper().replace(".", "_").replace("-", "_")


def settings_from(values: Mapping[str, Any]) -> Settings:
    """Parsed flags, by setting name, as Settings. Raises: ConfigError with all that is wrong with them."""
    problems = [
        *_missing(values, "ledger"),
        *_not_a_number(values, "api.patience"),
        *_no_addresses(values, "web.listen-address"),
        *_not_a_number(values, "web.max-requests"),
        *_unknown(values, "log.level", ("debug", "info", "warning", "error")),
        *_unknown(values, "log.format", ("text", "json")),
    ]
    if problems:
        raise ConfigError(problems)
    return Settings(
        config=Path(values["config.file"]) if values["config.file"] else None,
        prices=Path(values["prices.file"]) if values["prices.file"] else None,
        ledger=Path(values["ledger"]),
        kubeconfig=values["kubeconfig"],
        context=values["context"],
        api_patience_s=int(values["api.patience"]),
        addresses=_addresses(values["web.listen-address"]),
        max_requests=int(values["web.max-requests"]),
        log_level=values["log.level"],
        log_format=values["log.format"],
    )


def _unknown(values: Mapping[str, Any], name: str, options: tuple[str, ...]) -> list[Problem]:
    if values[name] in options:
        return []
    return [Problem("", f"--{name}", f"unknown '{values[name]}'; write {', '.join(options[:-1])} or {options[-1]}")]


def _missing(values: Mapping[str, Any], name: str) -> list[Problem]:
    return [] if values[name] else [Problem("", f"--{name}", "is empty; name a file")]


def _not_a_number(values: Mapping[str, Any], name: str) -> list[Problem]:
    text = str(values[name])
    if text.isascii() and text.isdigit() and int(text):
        return []
    return [Problem("", f"--{name}", f"'{text}' is no whole number above 0; write one such as 15")]


def _no_addresses(values: Mapping[str, Any], name: str) -> tuple[Problem, ...]:
    try:
        parse_all(_addresses(values[name]))
    except ConfigError as error:
        return error.problems
    return ()


def _addresses(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))
