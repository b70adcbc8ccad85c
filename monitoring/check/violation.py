"""What breaks a rule of Grafana's dashboard-linter, and the exclusions of its file `.lint`."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from monitoring.check.problem import Problem


class Violation(NamedTuple):
    """Of which rule, on which dashboard, panel and target."""

    rule: str
    dashboard: str
    text: str
    panel: str = ""
    target: int | None = None


class Entry(Struct, rename={"target_index": "targetIdx"}, forbid_unknown_fields=True):
    """Where a rule need not hold; what it does not name may be any."""

    dashboard: str = ""
    panel: str = ""
    target_index: int | None = None
    reason: str = ""

    def covers(self, violation: Violation) -> bool:
        """Whether it means that one."""
        named = ((self.dashboard, violation.dashboard), (self.panel, violation.panel))
        index = self.target_index
        return all(not ours or ours == theirs for ours, theirs in named) and index in (None, violation.target)


class Exclusion(Struct, forbid_unknown_fields=True):
    """Why a rule need not hold: nowhere, or where its entries say."""

    reason: str = ""
    entries: list[Entry] = []


class Exclusions(Struct, forbid_unknown_fields=True):
    """The file `.lint`."""

    exclusions: dict[str, Exclusion | None] = {}

    def all_entries(self) -> Iterator[tuple[str, Entry]]:
        """Each with its rule, and with the reason of the rule if it has none of its own."""
        for rule, exclusion in self.exclusions.items():
            stated = exclusion or Exclusion()
            for entry in stated.entries or [Entry()]:
                yield rule, Entry(entry.dashboard, entry.panel, entry.target_index, entry.reason or stated.reason)


def remaining(file: str, violations: Iterable[Violation], exclusions: Exclusions) -> Iterator[Violation | Problem]:
    """What no exclusion covers; and those that lack a reason, or cover nothing, as problems of the `file`."""
    entries = list(exclusions.all_entries())
    left = list(violations)
    for rule, entry in entries:
        place = " ".join(filter(None, (rule, entry.dashboard, f'"{entry.panel}"' if entry.panel else "")))
        if not entry.reason.strip():
            yield Problem(file, place, "excluded without a reason; write it")
        if not any(violation.rule == rule and entry.covers(violation) for violation in left):
            yield Problem(file, place, "excludes nothing; take it out")
    for violation in left:
        if not any(violation.rule == rule and entry.covers(violation) for rule, entry in entries):
            yield violation
