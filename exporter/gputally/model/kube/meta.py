"""What all Kubernetes objects have: kind, metadata, owners, conditions and label selectors.

Only the fields that are read are decoded; msgspec skips all others. Shapes: k8s.io/api meta/v1.

Owner references are untrusted: the creator of a pod controls every character of them, and the API server only requires
that no field is empty. Source: k8s.io/apimachinery pkg/api/validation/objectmeta.go, validateOwnerReference.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

Labels = dict[str, str]
_LABEL: Final = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_API_VERSION: Final = re.compile(rf"(?:(?=.{{1,253}}/){_LABEL}(?:\.{_LABEL})*/)?{_LABEL}")
_KIND: Final = re.compile("[A-Za-z](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_MOST_NAME: Final = 253
_MOST_LABEL: Final = 63
_MOST_API_VERSION: Final = _MOST_NAME + len("/") + _MOST_LABEL
_MOST_UID: Final = 128
"""The API server generates UUIDs; other UIDs are accepted up to this length."""


class Camel(Struct, rename="camel", frozen=True, gc=False):
    """Python names here, the API's camelCase on the wire; a decoded tree has no cycles for the garbage collector."""


class OwnerReference(Camel, frozen=True):
    """`controller` marks the one owner that manages the object."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None


class Meta(Camel, frozen=True):
    """ObjectMeta without annotations, which can be large: `AnnotatedMeta` has them, `PodMeta` a few."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Labels | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class AnnotatedMeta(Meta, frozen=True):
    """ObjectMeta with annotations."""

    annotations: Labels | None = None


class Object(Camel, frozen=True):
    """Any watched object."""

    metadata: Meta


class GeneratedMeta(Meta, frozen=True):
    """ObjectMeta with the generation, which each change of the spec raises."""

    generation: int = 0


class Condition(Camel, frozen=True):
    """A condition of a pod or node; `status` is True, False or Unknown."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: datetime | None = None


class Namespace(Object, frozen=True):
    """core/v1 Namespace."""

    metadata: AnnotatedMeta


class OwnerMeta(Camel, frozen=True):
    """PartialObjectMetadata of an owner: enough to continue the owner walk."""

    metadata: Meta
    kind: str = ""
    api_version: str = ""


class Status(Camel, frozen=True):
    """meta/v1 Status: why a request was rejected."""

    code: int = 0
    reason: str | None = None
    message: str | None = None
    details: dict[str, Any] | None = None


class SelectorRequirement(Camel, frozen=True):
    """A requirement on a label: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class Selector(Camel, frozen=True):
    """meta/v1 LabelSelector; an empty one selects everything."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[SelectorRequirement, ...] | None = None


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """Whether the selector matches; an empty one matches everything, none matches nothing.

    Source: k8s.io/apimachinery pkg/apis/meta/v1/helpers.go, LabelSelectorAsSelector.
    """
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in (selector.match_labels or {}).items())
    return equal and all(_holds(each, labels) for each in selector.match_expressions or ())


def characters_of(selector: Selector | None) -> int:
    """How long its keys and values are together, with one more for each: what it takes to keep it."""
    if selector is None:
        return 0
    texts = [text for pair in (selector.match_labels or {}).items() for text in pair]
    for each in selector.match_expressions or ():
        texts += (each.key, each.operator, *(each.values or ()))
    return sum(map(len, texts)) + len(texts)


def _holds(required: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    values = required.values or ()
    match required.operator:
        case "In":
            return labels.get(required.key) in values
        case "NotIn":
            return labels.get(required.key) not in values
        case "Exists":
            return required.key in labels
        case _:
            return required.key not in labels


class Owner(Struct, frozen=True, gc=False):
    """The target of a reference of an object in `namespace`.

    All fields together identify an owner: two tenants may use the same UID.
    """

    namespace: str
    reference: OwnerReference


class Lookup(StrEnum):
    """The result of an owner lookup."""

    FOUND = "found"
    GONE = "gone"
    """The object does not exist, or has another UID."""
    FORBIDDEN = "forbidden"
    UNKNOWN_KIND = "unknown_kind"
    """API discovery has no such kind."""
    REFUSED = "refused"
    OVERSIZED = "oversized"
    FAILED = "failed"
    """The lookup failed, and will be retried."""
    GIVEN_UP = "given_up"
    """Failed for the last time."""


def controller_of(references: Iterable[OwnerReference] | None) -> OwnerReference | None:
    """The reference to the managing owner; None if such an owner cannot exist, so that no oversized data is stored."""
    for each in references or ():
        if each.controller:
            return each if can_exist(each) else None
    return None


def can_exist(reference: OwnerReference) -> bool:
    """Whether an API server could serve an object of that kind and name."""
    version, kind = reference.api_version, reference.kind
    is_short = len(version) <= _MOST_API_VERSION and len(kind) <= _MOST_LABEL  # longer ones must not be cached
    return is_short and _is_kind(version, kind) and is_name(reference.name) and is_uid(reference.uid)


@lru_cache(maxsize=1024)
def _is_kind(api_version: str, kind: str) -> bool:
    return _API_VERSION.fullmatch(api_version) is not None and _KIND.fullmatch(kind) is not None


def is_uid(text: str) -> bool:
    """Whether `text` is acceptable as the UID of an object."""
    return 0 < len(text) <= _MOST_UID


def is_name(text: str) -> bool:
    """Whether `text` is a valid object name: one segment of a path, without control characters.

    Source: k8s.io/apimachinery pkg/api/validation/path/name.go, IsValidPathSegmentName; the maximum length is that
    of a DNS subdomain.
    """
    segment = 0 < len(text) <= _MOST_NAME and text not in (".", "..") and "/" not in text and "%" not in text
    return segment and text.isprintable()
