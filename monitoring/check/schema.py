"""Whether Grafana knows every field of a dashboard: what its own models lose or change is none of its schema."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from monitoring.check.problem import Problem

register_default_plugins()


def problems(documents: Mapping[str, Any]) -> Iterator[Problem]:
    """Fields that do not survive being read and written by Grafana's models."""
    for file, document in documents.items():
        try:
            again = json.loads(json.dumps(Dashboard.from_json(document), cls=JSONEncoder))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            yield Problem(file, "", f"Grafana's models cannot read it: {error!r}; mend what generates it")
            continue
        for path, text in _differences(document, again):
            yield Problem(file, path, f"{text}; leave it out, or write it as Grafana does")


_OF_PROMETHEUS: Final = frozenset({"step", "textFormat", "titleFormat"})
"""Fields of an annotation that its data source defines. Source: Grafana's packages/grafana-prometheus querybuilder."""


def _differences(ours: Any, theirs: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, value in ours.items():
            below = f"{path}.{name}" if path else name
            if name in theirs or (path.startswith("annotations.") and name in _OF_PROMETHEUS):
                yield from _differences(value, theirs.get(name, value), below)
            else:
                yield below, "Grafana has no such field there"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(*pair, f"{path}[{index}]")
    elif ours != theirs:
        yield path, f"Grafana reads {ours!r} as {theirs!r}"
