"""Groups of rules in the forms that Prometheus and its operator read."""

from typing import Any, Final

import yaml

from monitoring.config import Config
from monitoring.rule import Alert, Group, Recording
from monitoring.uid import uid

HEADER: Final = "# Written by `make generate` from alerts/{name}.py and alerts/config.yaml: change those.\n"
_WIDTH: Final = 120


def rule_file(group: Group, config: Config) -> str:
    """A file for `rule_files` of prometheus.yml. Raises: ConfigInvalid."""
    return HEADER.format(name=group.name) + _dumped({"groups": _groups(group, config)})


def prometheus_rule(group: Group, config: Config) -> str:
    """The same as an object for the Prometheus Operator. Raises: ConfigInvalid."""
    name = f"gputally-{group.name}"
    document = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "gputally"}},
        "spec": {"groups": _groups(group, config)},
    }
    return HEADER.format(name=group.name) + _dumped(document)


def _groups(group: Group, config: Config) -> list[dict[str, Any]]:
    """Recorded series in a group of their own, evaluated at their own pace."""
    recordings = [_recording(each, config) for each in group.recordings]
    pace = {"interval": group.interval} if group.interval else {}
    recorded = {"name": f"gputally-{group.name}.rules", **pace, "rules": recordings}
    alerting = {"name": f"gputally-{group.name}.alerts", "rules": [_alert(each, config) for each in group.alerts]}
    return [each for each in (recorded, alerting) if each["rules"]]


def _recording(recording: Recording, config: Config) -> dict[str, Any]:
    return {"record": recording.name, "expr": config.fill_recorded(recording.name, recording.expression)}


def _alert(alert: Alert, config: Config) -> dict[str, Any]:
    terms = config.terms(alert.name)
    wait = {"for": terms["for"]} if terms.get("for", "0s") != "0s" else {}
    return {
        "alert": alert.name,
        "expr": config.fill(alert.name, alert.expression),
        **wait,
        "labels": {"severity": terms["severity"], **alert.labels},
        "annotations": {
            "summary": alert.summary,
            "description": config.fill(alert.name, alert.description),
            "runbook_url": f"{config.runbooks}{alert.name}.md",
            "dashboard_url": f"{config.grafana}/d/{uid(alert.dashboard)}{_query(alert)}",
        },
    }


def _query(alert: Alert) -> str:
    """Prometheus fills in the values, and escapes them by Go's own function: it learnt `urlQueryEscape` in 3.8."""
    terms = [f"var-{name}={{{{ $labels.{name} | urlquery }}}}" for name in alert.variables]
    terms += [f"viewPanel={alert.panel}"] if alert.panel else []
    return "?" + "&".join(terms) if terms else ""


class _Dumper(yaml.SafeDumper):
    """Lists indented below their key, and texts of several lines as such."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - as overridden
        super().increase_indent(flow, False)  # noqa: FBT003 - as overridden


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _dumped(document: object) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
