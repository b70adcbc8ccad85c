"""The reference of all metrics of aggregator and agent, docs/metrics.md, generated from the catalog."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gputally.catalog.agent.node_metrics import NODE_GROUPS
from gputally.catalog.aggregator import accounting_metrics as accounting
from gputally.catalog.aggregator import allocation_metrics as allocation
from gputally.catalog.aggregator import capacity_metrics as capacity
from gputally.catalog.aggregator import lost_work_metrics as lost_work
from gputally.catalog.aggregator import pending_metrics as pending
from gputally.catalog.aggregator import preemption_metrics as preemption
from gputally.catalog.aggregator import price_metrics as prices
from gputally.catalog.aggregator import tier_metrics as tiers
from gputally.catalog.aggregator import usage_metrics as usage
from gputally.catalog.aggregator import wait_metrics as waits
from gputally.catalog.all import BUDGETS, HEALTH, PODS
from gputally.catalog.metric import Metric, Stability

GROUPS: Final[Mapping[str, Sequence[Metric[Any]]]] = {
    "Allocation": allocation.METRICS,
    "Jobs": allocation.JOB_METRICS,
    "Usage": usage.METRICS,
    "Capacity": capacity.METRICS,
    "Tiers": tiers.METRICS,
    "Pending": (*pending.METRICS, *waits.METRICS, *pending.UNCREATED_METRICS),
    "Preemption": (*preemption.METRICS, *lost_work.METRICS),
    "Pods and nodes": PODS,
    "Prices": prices.METRICS,
    "Budgets": BUDGETS,
    "Accounting": accounting.METRICS,
    "Exporter health": HEALTH,
    **NODE_GROUPS,
}
"""Metrics by the title of their subject."""


_UNITS: Final = {
    "gpu_seconds": "One physical GPU for one second; 3600 of them are a GPU-hour.",
    "timestamp_seconds": "Seconds since 1970-01-01 00:00 UTC; subtract from `time()` for an age.",
    "seconds": "Seconds.",
    "gpus": "Physical GPUs; a share of one is a fraction.",
    "cost": "Units of the currency named by the price book.",
    "bytes": "Bytes.",
    "ratio": "A share, from 0 to 1.",
    "joules": "Joules; their rate per second is the power in watts.",
    "celsius": "Degrees Celsius.",
    "watts": "Watts.",
    "info": "Always 1; the labels hold the information, for joins with other series.",
}
"""The meaning of each unit suffix (before `_total`); longer suffixes come first."""

_STABILITY: Final = {
    Stability.ALPHA: "may change or be removed in any release; the changelog says so.",
    Stability.STABLE: "keeps name, type and meaning; is removed no earlier than two minor releases after deprecation.",
}

_REFERENCE: Final = "for reference"

_INTRODUCTION: Final = """\
# Metrics

All metrics that gputally exposes. This page is generated from the declarations in `gputally.catalog`: edit those.
"""


def document(groups: Mapping[str, Sequence[Metric[Any]]]) -> str:
    """The page as Markdown: a table for each group (title: metrics), in the order given."""
    metrics = [metric for group in groups.values() for metric in group]
    sections = [_INTRODUCTION, _units(metrics), _stability(metrics), *(_section(*group) for group in groups.items())]
    return "\n".join(sections)


def _units(metrics: Iterable[Metric[Any]]) -> str:
    used = {ending for metric in metrics if (ending := _ending(metric))}
    rows = [(f"`_{ending}`", meaning) for ending, meaning in _UNITS.items() if ending in used]
    note = (
        "`_total` after the unit marks a counter: read it through `rate()` or `increase()`. Both "
        "[extrapolate](dashboards.md#young-series) for a series that is younger than their window.\n"
    )
    return "## Units\n\n" + (_table(("Ending", "Unit"), rows) + "\n" if rows else "") + note


def _ending(metric: Metric[Any]) -> str | None:
    name = metric.name.removesuffix("_total")
    return next((ending for ending in _UNITS if name.endswith(f"_{ending}")), None)


def _stability(metrics: Iterable[Metric[Any]]) -> str:
    lines = [f"- {level} {promise}\n" for level, promise in _STABILITY.items()]
    if any(metric.reference_only for metric in metrics):
        lines.append(f"- Metrics *{_REFERENCE}* are for manual queries: our dashboards and rules do not use them.\n")
    return "## Stability\n\n" + "".join(lines)


def _section(title: str, metrics: Iterable[Metric[Any]]) -> str:
    heads = ("Name", "Type", "Labels", "Meaning", "Stability")
    return f"## {title}\n\n" + _table(heads, map(_cells, metrics))


def _cells(metric: Metric[Any]) -> tuple[str, ...]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    stability = f"{metric.stability}, {_REFERENCE}" if metric.reference_only else str(metric.stability)
    return (f"`{metric.name}`", str(metric.kind), labels, metric.help, stability)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "".join(f"{line}\n" for line in _lines(heads, rows))


def _lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _line(heads)
    yield _line(["---"] * len(heads))
    yield from map(_line, rows)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells) + " |"
