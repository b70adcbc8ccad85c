"""All dashboards and rules, found where they are declared: a new file needs no mention here."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import alerts
import dashboards
from monitoring.board import Board, rendered
from monitoring.config import Config
from monitoring.rule import Group
from monitoring.rules import prometheus_rule, rule_file


def boards() -> Mapping[str, Board]:
    """The dashboards by the name of their file."""
    return {name: module.BOARD for name, module in _modules(dashboards)}


def groups() -> Mapping[str, Group]:
    """The groups of rules by the name of their file."""
    return {name: module.GROUP for name, module in _modules(alerts)}


def generated(config: Config) -> Mapping[str, str]:
    """Every file to be written, with what it holds. Raises: ConfigInvalid."""
    return {
        **{f"dashboards/generated/{name}.json": rendered(board, config) for name, board in boards().items()},
        **{f"alerts/generated/rules/{name}.yaml": rule_file(group, config) for name, group in groups().items()},
        **{
            f"alerts/generated/prometheusrules/{name}.yaml": prometheus_rule(group, config)
            for name, group in groups().items()
        },
    }


def _modules(package: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    for found in iter_modules(package.__path__):
        if not found.ispkg:
            yield found.name, import_module(f"{package.__name__}.{found.name}")
