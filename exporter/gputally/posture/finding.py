"""A finding of a check: which object, what is wrong, why it matters and what to do."""

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

ACCEPT: Final = "gputally.io/posture-accept"
"""Annotation of an object: the checks whose findings about it are intended, separated by commas."""


class Severity(StrEnum):
    """How bad a finding is, the worst first."""

    ERROR = "error"
    """The API server refuses it, or it can never work."""
    WARNING = "warning"
    """The object will lose work, or break the posture."""
    INFO = "info"
    """The object is often misunderstood."""


FAILING: Final = (Severity.ERROR, Severity.WARNING)
"""Findings of these severities change the exit status."""


class ObjectName(Struct, frozen=True, order=True):
    """The object of a finding; `namespace` is "" for objects of the cluster."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


class Remark(NamedTuple):
    """What a check says about an object."""

    object: ObjectName
    what: str
    why: str
    remedy: str


class Finding(Struct, frozen=True, kw_only=True):
    """One finding; `check` names the check, as in the annotation that accepts it."""

    check: str
    severity: Severity
    object: ObjectName
    what: str
    why: str
    remedy: str
