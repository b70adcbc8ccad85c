"""Findings that say the same of several objects, as one: a hundred Jobs of a template are read once."""

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from gputally.posture.finding import Finding, ObjectName
from gputally.posture.wording import listed, shortened


class FindingGroup(Struct, frozen=True, kw_only=True):
    """Findings that differ only in their object; `objects` names the first ones, and counts the others."""

    severity: str
    check: str
    objects: str
    what: str
    why: str
    remedy: str


def finding_groups(findings: Iterable[Finding]) -> tuple[FindingGroup, ...]:
    """The groups in the order of their first findings."""
    found = defaultdict[tuple[str, ...], list[ObjectName]](list)
    for each in findings:
        found[each.severity.value, each.check, each.what, each.why, each.remedy].append(each.object)
    return tuple(
        FindingGroup(severity=severity, check=check, objects=_named(objects), what=what, why=why, remedy=remedy)
        for (severity, check, what, why, remedy), objects in found.items()
    )


def _named(objects: list[ObjectName]) -> str:
    return listed(shortened(list(map(str, objects))))
