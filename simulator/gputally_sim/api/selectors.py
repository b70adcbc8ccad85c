"""Field and label selectors of lists and watches."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gputally_sim.api import refusals
from gputally_sim.documents import Doc, labels_of

_FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "status.phase",
            "status.nominatedNodeName",
        }
    ),
    "events": frozenset(
        {
            "reason",
            "type",
            "reportingComponent",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
        }
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "jobs": frozenset({"status.successful"}),
}
_COMMON = frozenset({"metadata.name", "metadata.namespace"})
_IN = re.compile(r"(?P<label>\S+)\s+(?P<operator>in|notin)\s+\((?P<values>[^)]*)\)")
_BETWEEN = re.compile(r",(?![^(]*\))")

Predicate = Callable[[Doc], bool]


@dataclass(frozen=True)
class Requirement:
    """A field or label with its allowed or, if `negated`, disallowed values."""

    name: str
    values: frozenset[str]
    negated: bool = False


def field_predicate(plural: str, selector: str) -> Predicate:
    """A predicate for a field selector; 400 for an unsupported field."""
    requirements = [_comparison(text) for text in selector.split(",") if text]
    for requirement in requirements:
        if requirement.name not in _COMMON | _FIELDS.get(plural, frozenset()):
            raise refusals.bad_request(f"field label not supported: {requirement.name}")
    return lambda doc: all((_field(doc, each.name) in each.values) != each.negated for each in requirements)


def label_predicate(selector: str) -> Predicate:
    """A predicate for a label selector (=, ==, !=, in, notin, existence)."""
    tests = [_label_test(text.strip()) for text in _BETWEEN.split(selector) if text.strip()]
    return lambda doc: all(test(labels_of(doc)) for test in tests)


def _comparison(text: str) -> Requirement:
    for operator in ("!=", "==", "="):
        name, found, value = text.partition(operator)
        if found:
            return Requirement(name.strip(), frozenset({value.strip()}), negated=operator == "!=")
    raise refusals.bad_request(f"invalid selector: {text!r}; can't understand {text!r}")


def _field(doc: Doc, path: str) -> str:
    value: object = doc
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _label_test(text: str) -> Callable[[dict[str, str]], bool]:
    if found := _IN.fullmatch(text):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return _among(Requirement(found["label"], values, negated=found["operator"] == "notin"))
    if "=" in text:
        return _among(_comparison(text))
    if text.startswith("!"):
        return lambda labels: text[1:] not in labels
    return lambda labels: text in labels


def _among(requirement: Requirement) -> Callable[[dict[str, str]], bool]:
    return lambda labels: (labels.get(requirement.name) in requirement.values) != requirement.negated
