"""Small dashboards and rules that pass every check, as a base for tests that break one part."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from gputally.catalog.metric import Metric, MetricType
from monitoring.check.answer import Answer, answers, with_recorded
from monitoring.check.asked import asked
from monitoring.check.grafana import Dashboard
from monitoring.check.loaded import Loaded
from monitoring.check.problem import Problem
from monitoring.check.rule import RuleFile
from monitoring.check.series import Vocabulary, vocabulary

Json = dict[str, Any]

FILE: Final = "dashboards/generated/small.json"
RULES: Final = "alerts/generated/rules/small.yaml"
TARGET: Final = ("cluster", "instance")


def metric(name: str, kind: MetricType, *labels: str, text: str = "A thing.") -> Metric[Any]:
    return Metric(name=name, kind=kind, help=text, labels=labels, rows=lambda _: ())


CATALOG: Final[Sequence[Metric[Any]]] = (
    metric("pods", MetricType.GAUGE, "tier", "tenant"),
    metric("oldest_timestamp_seconds", MetricType.GAUGE, "tier"),
    metric("share_ratio", MetricType.GAUGE, "tier"),
    metric("capacity_gpus", MetricType.GAUGE, "pool"),
    metric("gpu_up", MetricType.GAUGE, "gpu", text="Whether the GPU answers."),
    metric("gpu_info", MetricType.INFO, "gpu", "model"),
    metric("held_gpu_seconds_total", MetricType.COUNTER, "tier", "tenant"),
    metric("paid_cost_total", MetricType.COUNTER, "tier", "currency"),
    metric("energy_joules_total", MetricType.COUNTER, "tier"),
    metric("wait_seconds", MetricType.HISTOGRAM, "tier"),
)
KNOWN: Final[Vocabulary] = vocabulary(CATALOG, foreign={}, target=TARGET)


def target(expr: str, **changes: object) -> Json:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {"expr": expr, "refId": "A", "legendFormat": "series", "datasource": source, **changes}


def panel(*targets: Json, unit: str = "short", **changes: object) -> Json:
    """A panel of pods, with changes."""
    return {
        "id": 1,
        "type": "timeseries",
        "title": "Pods",
        "description": "How many there are.",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "fieldConfig": {"defaults": {"unit": unit, "noValue": "none"}, "overrides": []},
        "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8},
        "targets": list(targets) or [target('sum by (tier) (pods{cluster=~"$cluster"})')],
        **changes,
    }


def table(columns: Mapping[str, str], keys: Mapping[str, str]) -> Json:
    """A table with a query per column (heading: expression) and the key labels `keys` (label: heading)."""
    letters = dict(zip("ABCDEF", columns, strict=False))
    targets = [target(columns[head], refId=letter, format="table") for letter, head in letters.items()]
    heads = {**keys, **{f"Value #{letter}": head for letter, head in letters.items()}}
    organize = {"id": "organize", "options": {"renameByName": heads}}
    return panel(*targets, type="table", transformations=[organize])


def override(head: str, **properties: object) -> Json:
    """Settings of the table column with that heading."""
    set_ = [{"id": name, "value": value} for name, value in properties.items()]
    return {"matcher": {"id": "byName", "options": head}, "properties": set_}


def overridden(document: Json, *overrides: Json) -> Json:
    """The panel with these overrides."""
    return {**document, "fieldConfig": {**document["fieldConfig"], "overrides": list(overrides)}}


def linked(document: Json, url: str) -> Json:
    """The panel with a link on its values."""
    defaults = {**document["fieldConfig"]["defaults"], "links": [{"title": "More", "url": url}]}
    return {**document, "fieldConfig": {**document["fieldConfig"], "defaults": defaults}}


def variable(name: str, query: str = "", **changes: object) -> Json:
    return {
        "name": name,
        "label": name.title(),
        "type": "query",
        "query": query or f"label_values(pods, {name})",
        "refresh": 2,
        "multi": True,
        "allValue": ".+",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        **changes,
    }


DATASOURCE: Final = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def board(*panels: Json, variables: Sequence[Json] = (variable("cluster"),), **changes: object) -> Json:
    """A dashboard with these panels."""
    return {
        "uid": "gputally-small",
        "title": "Small",
        "editable": False,
        "panels": list(panels) or [panel()],
        "templating": {"list": [DATASOURCE, *variables]},
        **changes,
    }


def alert(expr: str = "sum by (cluster, tier) (pods) > 5", **changes: object) -> Json:
    """A correct alert, with changes."""
    return {
        "alert": "PodsWait",
        "expr": expr,
        "labels": {"severity": "warning"},
        "annotations": annotations(),
        **changes,
    }


def annotations(**changes: str) -> dict[str, str]:
    """Correct annotations of an alert, with changes."""
    return {
        "summary": "Pods wait.",
        "description": "{{ $value }} pods of {{ $labels.tier }} wait.",
        "runbook_url": "https://example.com/runbooks/PodsWait.md",
        "dashboard_url": "/d/gputally-small?var-cluster={{ $labels.cluster | urlquery }}",
        **changes,
    }


def rules(*found: Json) -> Json:
    return {"groups": [{"name": "small", "rules": list(found)}]}


def loaded(*boards: Json, rule: Json | None = None, root: Path = Path("nowhere")) -> Loaded:
    """These documents as if read from files: dashboards small, small1 and so on."""
    documents = {f"dashboards/generated/small{number or ''}.json": each for number, each in enumerate(boards)}
    return Loaded(
        root=root,
        dashboards={file: msgspec.convert(each, Dashboard) for file, each in documents.items()},
        rules={RULES: msgspec.convert(rule, RuleFile)} if rule else {},
        documents=documents,
    )


def answered(found: Loaded) -> tuple[list[Answer], list[Problem]]:
    """The answers to all queries, and the problems of queries without an answer."""
    questions = list(asked(found))
    return answers(questions, with_recorded(questions, KNOWN))
