"""The rules of Grafana's dashboard-linter for queries.

Source: grafana/dashboard-linter docs/index.md and docs/rules.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import promql_parser as promql
from promql_parser import Expr

from monitoring.check.grafana import DataSource, Target
from monitoring.check.syntax import RANGE, RATE_INTERVAL, NotPromql, chosen, matchers, nodes, parsed, selectors

_RATES: Final = ("irate", "rate")
_GROWTH: Final = ("increase", *_RATES)


def target_logql_rule(target: Target) -> Iterator[str]:
    """Queries of logs parse; here are none."""
    if _asks_loki(target):
        yield "it asks for logs, which nothing here checks; ask Prometheus"


def target_logql_auto_rule(target: Target) -> Iterator[str]:
    """Queries of logs use $__auto."""
    if _asks_loki(target) and "[" in target.expr and "[$__auto]" not in target.expr:
        yield "its range of logs is fixed; write [$__auto]"


def target_promql_rule(target: Target) -> Iterator[str]:
    """Queries parse."""
    try:
        parsed(target.expr)
    except NotPromql as error:
        yield f"no PromQL: {error}; mend {target.expr!r}"


def target_rate_interval_rule(target: Target) -> Iterator[str]:
    """Rates are over $__rate_interval, growth is over it or over the time shown: never over a fixed time."""
    for node, above in _nodes(target):
        if isinstance(node, promql.MatrixSelector) and above:
            name = above[-1].func.name if isinstance(above[-1], promql.Call) else ""
            if name in _GROWTH and node.range not in _fitting(name):
                yield f"{name}() over a time of its own; write [$__rate_interval]"


def target_job_rule(target: Target) -> Iterator[str]:
    """All series are narrowed by job."""
    yield from _unmatched(target, "job")


def target_instance_rule(target: Target) -> Iterator[str]:
    """All series are narrowed by instance."""
    yield from _unmatched(target, "instance")


def target_counter_agg_rule(target: Target) -> Iterator[str]:
    """What ends in _total goes into a rate at once."""
    for node, above in _nodes(target):
        if isinstance(node, promql.VectorSelector) and (node.name or "").endswith("_total"):
            function = above[-2] if len(above) > 1 and isinstance(above[-1], promql.MatrixSelector) else None
            if not isinstance(function, promql.Call) or function.func.name not in _GROWTH:
                yield f"{node.name} is not inside rate(), irate() or increase(); put it there"


def _asks_loki(target: Target) -> bool:
    return isinstance(target.datasource, DataSource) and target.datasource.type == "loki"


def _nodes(target: Target) -> list[tuple[Expr, tuple[Expr, ...]]]:
    """Nothing when it does not parse, which is for another rule to say."""
    try:
        return list(nodes(parsed(target.expr)))
    except NotPromql:
        return []


def _fitting(function: str) -> tuple[timedelta, ...]:
    return (RATE_INTERVAL,) if function in _RATES else (RATE_INTERVAL, RANGE)


def _unmatched(target: Target, label: str) -> Iterator[str]:
    try:
        found = list(selectors(parsed(target.expr)))
    except NotPromql:
        return
    for selector, _ in found:
        wanted = (label, promql.MatchOp.Re, chosen(label))
        if not any((each.name, each.op, each.value) == wanted for each in matchers(selector)):
            yield f'{selector.name} is not narrowed by {label}; add {label}=~"${label}"'
