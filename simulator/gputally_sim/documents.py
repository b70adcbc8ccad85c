"""Kubernetes objects as JSON documents. Stored documents are immutable: each write builds a new one."""

from collections.abc import Mapping
from typing import Any

Doc = dict[str, Any]
Key = tuple[str, str]
"""Namespace ("" for cluster-scoped objects) and name."""


def merge(target: object, patch: object) -> Any:  # noqa: ANN401 - a JSON merge patch may turn any value into any other
    """Apply the JSON merge patch `patch` to `target`; shares unchanged parts. Source: RFC 7396."""
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
    """Namespace and name of the object."""
    meta = doc["metadata"]
    return meta.get("namespace", ""), meta["name"]


def uid_of(doc: Doc) -> str:
    """The object's UID."""
    uid: str = doc["metadata"]["uid"]
    return uid


def labels_of(doc: Doc) -> dict[str, str]:
    """The labels; empty if there are none."""
    return doc["metadata"].get("labels") or {}


def annotation(doc: Doc, name: str, default: str = "") -> str:
    """The annotation `name`, or `default`."""
    found: str = (doc["metadata"].get("annotations") or {}).get(name, default)
    return found


def controller_of(doc: Doc) -> Doc | None:
    """The owner reference of the managing controller."""
    references: list[Doc] = doc["metadata"].get("ownerReferences") or []
    return next((reference for reference in references if reference.get("controller")), None)


def matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether `labels` match `selector` (matchLabels)."""
    return all(labels.get(name) == value for name, value in selector.items())
