"""Whether an alert tells whom it wakes what happened, where to look, and what to do."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from monitoring.check.answer import Answer
from monitoring.check.dimension import MOMENT, NUMBER, RATIO, SECONDS, Dimension, named
from monitoring.check.grafana import Dashboard
from monitoring.check.loaded import Loaded
from monitoring.check.navigation import misled
from monitoring.check.problem import Problem
from monitoring.check.rule import Rule

RUNBOOKS: Final = "docs/runbooks"
_SEVERITIES: Final = ("critical", "warning", "info")
_HUMAN: Final[Mapping[str, Dimension]] = {
    "humanizeDuration": SECONDS,
    "humanizePercentage": RATIO,
    "humanize1024": named("bytes"),
    "humanizeTimestamp": MOMENT,
}
"""What Prometheus' templates take a value for."""
_HUMANIZED: Final = re.compile(r"\$value\s*\|\s*(humanize\w+)")


def problems(loaded: Loaded) -> Iterator[Problem]:
    """Of all alerts, and of runbooks that are for none of them."""
    by_uid = {dashboard.uid: dashboard for dashboard in loaded.dashboards.values()}
    alerts = list(loaded.alerts)
    for file, alert in alerts:
        for text in (*_of_texts(alert), *_of_runbook(alert, loaded.root), *_of_dashboard(alert, by_uid)):
            yield Problem(file, alert.place, text)
    for name, times in Counter(alert.alert for _, alert in alerts).items():
        if times > 1:
            yield Problem("alerts/generated", f'alert "{name}"', f"declared {times} times; rename one")
    for path in sorted((loaded.root / RUNBOOKS).glob("*.md")):
        if path.stem not in {"README", *(alert.alert for _, alert in alerts)}:
            yield Problem(f"{RUNBOOKS}/{path.name}", "", "there is no such alert; rename the runbook or take it out")


def humanized(answers: Iterable[Answer]) -> Iterator[Problem]:
    """Values that an annotation shows as something else than they measure."""
    for answer in answers:
        rule, measured = answer.asked.rule, answer.flow.dimension
        for name in dict.fromkeys(_HUMANIZED.findall(" ".join(rule.annotations.values()) if rule else "")):
            wanted = _HUMAN.get(name)
            if wanted and measured not in (wanted, NUMBER):
                yield answer.asked.problem(f"its value is {measured}, but {name} shows {wanted}; take another")


def _of_texts(alert: Rule) -> Iterator[str]:
    severity = alert.labels.get("severity", "")
    summary, description = (alert.annotations.get(name, "").strip() for name in ("summary", "description"))
    if severity not in _SEVERITIES:
        yield f"its severity is {severity!r}; make it one of {', '.join(_SEVERITIES)}"
    if not summary:
        yield "it has no summary; say in a sentence what is wrong"
    if "{{" in summary:
        yield "its summary differs from alert to alert, so that they are not grouped; move values to the description"
    if "{{" not in description:
        yield "its description names no label or value; say which one, by {{ $labels.x }} or {{ $value }}"


def _of_runbook(alert: Rule, root: Path) -> Iterator[str]:
    page = f"{alert.alert}.md"
    if not alert.annotations.get("runbook_url", "").endswith(f"/{page}"):
        yield f"its runbook_url does not end in /{page}; make it so"
    if not (root / RUNBOOKS / page).exists():
        yield f"it has no runbook; write {RUNBOOKS}/{page}"


def _of_dashboard(alert: Rule, by_uid: Mapping[str, Dashboard]) -> Iterator[str]:
    url = alert.annotations.get("dashboard_url", "")
    if "/d/" not in url:
        yield "it has no dashboard_url; say which dashboard to look at"
    yield from (f"dashboard_url: {text}" for text in misled(url, by_uid))
