"""JSON documents as Kubernetes writes them. A stored document is never changed in place: a write builds a new one."""

from collections.abc import Mapping
from typing import Any

Doc = dict[str, Any]
Key = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""


def merge(target: object, patch: object) -> Any:  # noqa: ANN401 - a JSON merge patch may turn any value into any other
    """`target` after the JSON merge patch `patch`; shares what did not change. Source: RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def key_of(doc: Doc) -> Key:
    """Where the object lives."""
    meta = doc["metadata"]
    return meta.get("namespace", ""), meta["name"]


def uid_of(doc: Doc) -> str:
    """The identity of this incarnation."""
    uid: str = doc["metadata"]["uid"]
    return uid


def labels_of(doc: Doc) -> dict[str, str]:
    """Labels, empty when there are none."""
    return doc["metadata"].get("labels") or {}


def annotation(doc: Doc, name: str, default: str = "") -> str:
    """One annotation."""
    found: str = (doc["metadata"].get("annotations") or {}).get(name, default)
    return found


def controller_of(doc: Doc) -> Doc | None:
    """The owner reference of the one owner that manages the object."""
    references: list[Doc] = doc["metadata"].get("ownerReferences") or []
    return next((reference for reference in references if reference.get("controller")), None)


def matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether `labels` carry all of `selector` (matchLabels)."""
    return all(labels.get(name) == value for name, value in selector.items())
