"""What fleets want differently about alerts: tiers, thresholds and severities, all from one file."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from gputally.accounting.pods.posting import SCHEDULING_BOUNDS_S

CONFIG: Final = Path(__file__).parents[1] / "alerts" / "config.yaml"
"""The defaults, each with its reason. A file of one's own holds what differs."""


_NAME: Final = re.compile(r"\$([a-z_]+)")
_OF_PROMETHEUS: Final = frozenset({"labels", "value", "index", "node"})
"""Names in Prometheus' own templates, such as `{{ $labels.tier }}`; `node_names` counts with the last two."""


Terms = Mapping[str, str | int | float]
"""What a text may name with `$`, by name."""


class ConfigInvalid(Exception):
    """What is wrong with a configuration of alerts, with the file and the field."""


class Objective(Struct, frozen=True, forbid_unknown_fields=True):
    """So large a share of pods is to be bound within so many seconds, over 30 days."""

    seconds: int
    share: float

    def __post_init__(self) -> None:
        """Raises: ValueError for seconds that no bucket ends at: nothing would be known of them."""
        if self.seconds not in SCHEDULING_BOUNDS_S:
            raise ValueError(f"seconds: {self.seconds} is none of {', '.join(map(str, SCHEDULING_BOUNDS_S))}")


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that may differ. `alerts` has for each alert its severity, how long it waits, and its thresholds."""

    hardware_xids: str
    runbooks: str
    grafana: str
    aggregator: str
    objective: Objective
    alerts: Mapping[str, Terms]

    @property
    def shared(self) -> Terms:
        """What every text may name with `$`."""
        return {
            "hardware_xids": self.hardware_xids,
            "objective_seconds": self.objective.seconds,
            "objective_share": self.objective.share,
            "objective_allowed": round(1 - self.objective.share, 9),
        }

    def term(self, subject: str, name: str) -> str | int | float:
        """A term of an alert, of the `objective` or of the `aggregator`. Raises: ConfigInvalid when there is none."""
        if (subject, name) == ("aggregator", "url"):
            return self.aggregator.rstrip("/")
        found = self.shared.get(f"objective_{name}") if subject == "objective" else self.terms(subject).get(name)
        if found is None:
            raise ConfigInvalid(f"{subject}.{name}: missing; a dashboard shows it")
        return found

    def terms(self, alert: str) -> Terms:
        """What the texts of that alert may name with `$`. Raises: ConfigInvalid when nothing is said of it."""
        if alert not in self.alerts:
            raise ConfigInvalid(f"alerts.{alert}: missing; give its severity, its `for`, and its thresholds")
        return {**self.shared, **self.alerts[alert]}

    def fill(self, alert: str, text: str) -> str:
        """The text with its `$names` replaced. Raises: ConfigInvalid for one that the configuration lacks."""
        return _filled(text, self.terms(alert), missing=f"alerts.{alert}.{{}}: missing; the alert's texts name it")

    def fill_recorded(self, series: str, text: str) -> str:
        """The same for a recorded series, which has no terms of its own. Raises: ConfigInvalid."""
        return _filled(text, self.shared, missing=f"{{}}: missing; the recorded series {series} names it")


def _filled(text: str, terms: Terms, *, missing: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in _OF_PROMETHEUS:
            return match[0]
        if name not in terms:
            raise ConfigInvalid(missing.format(name))
        return f"{terms[name]}"

    return _NAME.sub(value, text)


def read(path: Path | None = None) -> Config:
    """The defaults, with what the file at `path` says otherwise. Raises: ConfigInvalid naming file and field."""
    stated = _document(CONFIG)
    if path:
        stated = _overlaid(stated, _document(path), path=path, field="")
    try:
        return msgspec.convert(stated, Config)
    except msgspec.ValidationError as error:
        raise ConfigInvalid(f"{path or CONFIG}: {error}") from None


def _document(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.yaml.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigInvalid(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ConfigInvalid(f"{path}: holds no fields; see {CONFIG.name} for what there is")
    return found


def _overlaid(base: dict[str, Any], above: dict[str, Any], *, path: Path, field: str) -> dict[str, Any]:
    """`base` with the values of `above`, field by field. Raises: ConfigInvalid for a field that is not in `base`."""
    result = dict(base)
    for key, value in above.items():
        name = f"{field}{key}"
        if key not in base:
            raise ConfigInvalid(f"{path}: {name}: there is no such field; there are {', '.join(map(str, base))}")
        below = base[key]
        if isinstance(below, dict) != isinstance(value, dict):
            raise ConfigInvalid(f"{path}: {name}: write it as in {CONFIG.name}")
        result[key] = _overlaid(below, value, path=path, field=f"{name}.") if isinstance(value, dict) else value
    return result
