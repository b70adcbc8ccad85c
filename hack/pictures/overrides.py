"""Which field configuration a series or column has: the panel's defaults, and the overrides that match its name."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

import msgspec

from hack.pictures.dashboard import Matcher, Panel
from hack.pictures.fields import Field
from hack.pictures.patterns import matcher

_DEFAULT_MODE: Final = {
    **dict.fromkeys(("stat", "gauge", "bargauge", "table"), "thresholds"),
    "state-timeline": "continuous-GrYlRd",
}


def field_of(panel: Panel, *names: str, ref_id: str = "") -> Field:
    """How the panel shows the series or column that is called by any of these `names`."""
    raw = deepcopy(dict(panel.field_config.defaults))
    if not raw.get("color", {}).get("mode"):
        raw["color"] = {**raw.get("color", {}), "mode": _DEFAULT_MODE.get(panel.type, "palette-classic")}
    for override in panel.field_config.overrides:
        if _applies(override.matcher, names, ref_id):
            for change in override.properties:
                _put(raw, change.id.split("."), change.value)
    return msgspec.convert(raw, Field, strict=False)


def _applies(chosen: Matcher, names: Sequence[str], ref_id: str) -> bool:
    wanted = chosen.options
    match chosen.id:
        case "byName":
            return wanted in names
        case "byNames":
            return any(name in wanted.get("names", ()) for name in names)
        case "byRegexp":
            return any(matcher(str(wanted))(name) for name in names)
        case "byFrameRefID":
            return bool(wanted == ref_id)
    return False


def _put(raw: dict[str, Any], path: Sequence[str], value: Any) -> None:  # noqa: ANN401 - JSON
    for key in path[:-1]:
        raw = raw.setdefault(key, {})
    if value is None:
        raw.pop(path[-1], None)
    else:
        raw[path[-1]] = value
