"""The published rules of Grafana's dashboard-linter, and what `dashboards/.lint` excludes from them."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from monitoring.check import lint_panels, lint_targets, lint_templates
from monitoring.check.asked import settled
from monitoring.check.grafana import Dashboard, Panel, Target
from monitoring.check.loaded import Loaded
from monitoring.check.problem import Problem
from monitoring.check.violation import Exclusions, Violation, remaining

FILE: Final = "dashboards/.lint"

_FOR_DASHBOARDS: Final[Mapping[str, Callable[[Dashboard], Iterator[str]]]] = {
    "template-datasource-rule": lint_templates.template_datasource_rule,
    "template-job-rule": lint_templates.template_job_rule,
    "template-instance-rule": lint_templates.template_instance_rule,
    "template-label-promql-rule": lint_templates.template_label_promql_rule,
    "template-on-time-change-reload-rule": lint_templates.template_on_time_change_reload_rule,
    "uneditable-dashboard-rule": lint_templates.uneditable_dashboard_rule,
}
_FOR_PANELS: Final[Mapping[str, Callable[[Panel], Iterator[str]]]] = {
    "panel-datasource-rule": lint_panels.panel_datasource_rule,
    "panel-title-description-rule": lint_panels.panel_title_description_rule,
    "panel-units-rule": lint_panels.panel_units_rule,
    "panel-no-targets-rule": lint_panels.panel_no_targets_rule,
}
_FOR_TARGETS: Final[Mapping[str, Callable[[Target], Iterator[str]]]] = {
    "target-logql-rule": lint_targets.target_logql_rule,
    "target-logql-auto-rule": lint_targets.target_logql_auto_rule,
    "target-promql-rule": lint_targets.target_promql_rule,
    "target-rate-interval-rule": lint_targets.target_rate_interval_rule,
    "target-job-rule": lint_targets.target_job_rule,
    "target-instance-rule": lint_targets.target_instance_rule,
    "target-counter-agg-rule": lint_targets.target_counter_agg_rule,
}


def problems(loaded: Loaded) -> Iterator[Problem]:
    """What no exclusion covers, and exclusions without reason or use."""
    try:
        exclusions = read(loaded.root / FILE)
    except msgspec.MsgspecError as error:
        yield Problem(FILE, "", f"cannot be read: {error}; write it as the linter's docs/index.md says")
        return
    files = {dashboard.title: file for file, dashboard in loaded.dashboards.items()}
    found = [each for dashboard in loaded.dashboards.values() for each in violations(dashboard)]
    for each in remaining(FILE, found, exclusions):
        yield each if isinstance(each, Problem) else _problem(files[each.dashboard], each)


def read(path: Path) -> Exclusions:
    """The exclusions; none without the file. Raises: msgspec.MsgspecError."""
    return msgspec.yaml.decode(path.read_bytes(), type=Exclusions) if path.exists() else Exclusions()


def violations(dashboard: Dashboard) -> Iterator[Violation]:
    """Of all rules."""
    title = dashboard.title
    for rule, check in _FOR_DASHBOARDS.items():
        yield from (Violation(rule, title, text) for text in check(dashboard))
    for panel in dashboard.pictures:
        for rule, of_panel in _FOR_PANELS.items():
            yield from (Violation(rule, title, text, panel.title) for text in of_panel(panel))
        for index, target in enumerate(panel.targets):
            settled_target = replace(target, expr=settled(target.expr, dashboard))
            for rule, of_target in _FOR_TARGETS.items():
                yield from (Violation(rule, title, text, panel.title, index) for text in of_target(settled_target))


def _problem(file: str, violation: Violation) -> Problem:
    place = f'panel "{violation.panel}"' if violation.panel else ""
    return Problem(file, place, f"{violation.text} ({violation.rule})")
