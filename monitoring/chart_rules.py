"""Rule files for the chart, in which `@NAME.field@` stands for what the chart's values say."""

from typing import Any

import msgspec

from monitoring.config import Config, Terms
from monitoring.rule import Group
from monitoring.rules import rule_file


class _Placeholders(Config, frozen=True):
    """A configuration whose fields are all placeholders."""

    @property
    def shared(self) -> Terms:
        """See `Config.shared`."""
        return {name: f"@{name.replace('_', '.', 1)}@" for name in super().shared}


def chart_rules(group: Group, config: Config) -> str:
    """The file of the chart for a group. Raises: ConfigInvalid."""
    return rule_file(group, _placeholders(config))


def defaults(config: Config) -> str:
    """What the placeholders stand for unless the chart's values say otherwise, as YAML."""
    return msgspec.yaml.encode(config, order="sorted").decode()


def _placeholders(config: Config) -> Config:
    stated: dict[str, Any] = msgspec.structs.asdict(config)
    alerts = {name: {term: f"@{name}.{term}@" for term in terms} for name, terms in config.alerts.items()}
    return _Placeholders(**{**stated, "runbooks": "@runbooks@", "grafana": "@grafana@", "alerts": alerts})
