"""Reads what users load: every generated dashboard and rule below a root."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from monitoring.check.grafana import Dashboard
from monitoring.check.problem import Problem
from monitoring.check.rule import Rule, RuleFile

DASHBOARDS: Final = "dashboards/generated"
RULES: Final = "alerts/generated/rules"
OBJECTS: Final = "alerts/generated/prometheusrules"


class Loaded(Struct, frozen=True, kw_only=True):
    """Dashboards and rules by the path of their file, the same as plain documents, and what could not be read."""

    root: Path
    dashboards: Mapping[str, Dashboard] = {}
    rules: Mapping[str, RuleFile] = {}
    documents: Mapping[str, Any] = {}
    problems: tuple[Problem, ...] = ()

    @property
    def all_rules(self) -> Iterator[tuple[str, Rule]]:
        """Each with its file."""
        for file, content in self.rules.items():
            yield from ((file, rule) for rule in content.rules)

    @property
    def alerts(self) -> Iterator[tuple[str, Rule]]:
        """Those of the rules that alert."""
        return ((file, rule) for file, rule in self.all_rules if rule.alert)


def load(root: Path) -> Loaded:
    """All of it; a file that cannot be read is a problem."""
    documents: dict[str, Any] = {}
    read: dict[str, Dashboard | RuleFile] = {}
    problems: list[Problem] = []
    for path in sorted([*(root / DASHBOARDS).glob("*.json"), *(root / RULES).glob("*.yaml")]):
        file = path.relative_to(root).as_posix()
        try:
            documents[file] = _document(path)
            kind: type[Dashboard | RuleFile] = Dashboard if path.suffix == ".json" else RuleFile
            read[file] = msgspec.convert(documents[file], kind)
        except (ValueError, msgspec.MsgspecError, yaml.YAMLError) as error:
            problems.append(Problem(file, "", f"cannot be read: {error}; mend what generates it"))
    rules = {file: content for file, content in read.items() if isinstance(content, RuleFile)}
    return Loaded(
        root=root,
        dashboards={file: content for file, content in read.items() if isinstance(content, Dashboard)},
        rules=rules,
        documents=documents,
        problems=(*problems, *_differing(root, {file: documents[file] for file in rules})),
    )


def _document(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    content = path.read_bytes()
    return json.loads(content) if path.suffix == ".json" else yaml.safe_load(content)


def _differing(root: Path, rules: Mapping[str, Any]) -> Iterator[Problem]:
    """What the operator reads need not be checked again: it must be the same."""
    for file, document in rules.items():
        path = root / OBJECTS / Path(file).name
        held = _document(path) if path.exists() else None
        if not isinstance(held, dict) or held.get("spec") != document:
            name = path.relative_to(root).as_posix()
            yield Problem(name, "", f"holds other rules than {file}; run make generate")
