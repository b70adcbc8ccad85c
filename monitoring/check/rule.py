"""Rules as Prometheus reads them."""

from collections.abc import Iterator

from msgspec import Struct


class Rule(Struct, frozen=True, rename={"for_": "for"}, forbid_unknown_fields=True):
    """An alert, or a series that is recorded."""

    expr: str
    alert: str = ""
    record: str = ""
    for_: str = ""
    keep_firing_for: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @property
    def place(self) -> str:
        """How problems call it."""
        return f'alert "{self.alert}"' if self.alert else f'recorded "{self.record}"'


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """Rules that are evaluated one after the other."""

    name: str
    rules: list[Rule]
    interval: str = ""


class RuleFile(Struct, frozen=True, forbid_unknown_fields=True):
    """What `rule_files` of prometheus.yml names."""

    groups: list[Group]

    @property
    def rules(self) -> Iterator[Rule]:
        """Of all its groups."""
        for group in self.groups:
            yield from group.rules
