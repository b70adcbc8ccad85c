"""Whether links lead to dashboards that understand them, and variables narrow something."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from monitoring.check.asked import heads, links, series_of
from monitoring.check.grafana import Dashboard, Link, Panel
from monitoring.check.problem import Problem
from monitoring.check.syntax import variables

_ADDRESS: Final = re.compile(r"/d/(?P<uid>[\w-]+)(?:[/?].*)?")
_PASSED: Final = re.compile(r"var-(\w+)=")
_KEPT: Final = re.compile(r"\$\{(\w+):queryparam\}")
_PANEL: Final = re.compile(r"viewPanel=(\d+)")
_CELL: Final = re.compile(r"""\$\{__data\.fields(?:\["([^"]+)"\]|\.(\w+))\}""")


def problems(dashboards: Mapping[str, Dashboard]) -> Iterator[Problem]:
    """Of all dashboards."""
    by_uid = {dashboard.uid: dashboard for dashboard in dashboards.values()}
    for file, dashboard in dashboards.items():
        yield from (Problem(file, f'link "{link.title}"', text) for link, text in _linked(dashboard, by_uid))
        for panel in dashboard.all_panels:
            for text in (*_of_panel(panel, dashboard, by_uid), *_undeclared(panel, dashboard)):
                yield Problem(file, panel.place, text)
        yield from (Problem(file, f'variable "{name}"', text) for name, text in _unused(dashboard))


def misled(url: str, by_uid: Mapping[str, Dashboard]) -> Iterator[str]:
    """Why the address of a dashboard leads nowhere, or passes on what is not understood there."""
    match = _ADDRESS.search(url)
    if match is None:
        return
    if match["uid"] not in by_uid:
        yield f"there is no dashboard {match['uid']}; there are {', '.join(sorted(by_uid))}"
        return
    known = _names(by_uid[match["uid"]])
    panels = {str(panel.id) for panel in by_uid[match["uid"]].pictures}
    yield from (f"{match['uid']} has no panel {panel}" for panel in _PANEL.findall(url) if panel not in panels)
    for name in dict.fromkeys((*_PASSED.findall(url), *_KEPT.findall(url))):
        if name not in known and not name.startswith("__"):
            yield f"{match['uid']} has no variable {name}; there are {', '.join(sorted(known))}"


def _names(dashboard: Dashboard) -> set[str]:
    return {each.name for each in dashboard.variables}


def _linked(dashboard: Dashboard, by_uid: Mapping[str, Dashboard]) -> Iterator[tuple[Link, str]]:
    for link in dashboard.links:
        yield from ((link, text) for text in misled(link.url, by_uid))


def _of_panel(panel: Panel, dashboard: Dashboard, by_uid: Mapping[str, Dashboard]) -> Iterator[str]:
    names, columns = _names(dashboard), heads(panel)
    for link in links(panel):
        problems = [
            *misled(link.url, by_uid),
            *(f"there is no variable {name} here" for name in variables(link.url) if name not in names),
            *(f"there is no column {name!r}" for name in _cells(link) if name not in columns.values()),
        ]
        yield from (f'link "{link.title}": {text}' for text in problems)


def _cells(link: Link) -> Iterator[str]:
    return (quoted or plain for quoted, plain in _CELL.findall(link.url))


def _undeclared(panel: Panel, dashboard: Dashboard) -> Iterator[str]:
    names = _names(dashboard)
    for target in panel.targets:
        for name in dict.fromkeys(variables(target.expr)):
            if name not in names:
                yield f"it asks by ${name}, which is no variable of the dashboard; declare it"


def _unused(dashboard: Dashboard) -> Iterator[tuple[str, str]]:
    asked = [target.expr for panel in dashboard.all_panels for target in panel.targets]
    asked += [each.expr for each in dashboard.marks]
    for variable in dashboard.variables:
        others = [each.text for each in dashboard.variables if each is not variable]
        used = {name for text in (*asked, *others) for name in variables(text)}
        if variable.type != "datasource" and variable.name not in used:
            yield variable.name, f"no query asks by ${variable.name}; use it or take it out"
        if variable.type == "query" and series_of(variable) is None:
            yield variable.name, f"{variable.text!r} is not understood; write label_values(series, label)"
