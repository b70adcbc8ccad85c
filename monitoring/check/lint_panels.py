"""The rules of Grafana's dashboard-linter for panels, here for every kind of panel that shows data.

Source: grafana/dashboard-linter docs/index.md and docs/rules.
"""

from collections.abc import Iterator

from monitoring.check.grafana import Panel, uid
from monitoring.check.grafana_units import LISTED
from monitoring.check.lint_templates import TEMPLATED


def panel_datasource_rule(panel: Panel) -> Iterator[str]:
    """Panels ask the data source that the reader chose."""
    for source in (panel.datasource, *(target.datasource for target in panel.targets)):
        if uid(source) not in TEMPLATED:
            yield f"it asks the data source {uid(source)!r}; let it ask ${{datasource}}"


def panel_title_description_rule(panel: Panel) -> Iterator[str]:
    """Panels say what they show, and how to read it."""
    if not panel.title.strip():
        yield f"panel {panel.id} has no title; name the question it answers"
    if not panel.description.strip():
        yield "it has no description; say how to read it"


def panel_units_rule(panel: Panel) -> Iterator[str]:
    """Panels have a unit of Grafana's, or words for values."""
    field = panel.field_config
    if field.defaults.mappings or any(each.get("mappings") for each in field.overrides):
        return
    overriding = [str(each.get("unit")) for each in field.overrides if each.get("unit")]
    for unit in overriding or [field.defaults.unit]:
        if unit not in LISTED:
            yield f"its unit {unit!r} is not in Grafana's list, as far as grafana_units.py has it; choose one that is"


def panel_no_targets_rule(panel: Panel) -> Iterator[str]:
    """Panels ask something."""
    if not panel.targets:
        yield "it asks nothing; give it a query, or make it a text"
