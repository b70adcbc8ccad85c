"""Owners in owner references. These are untrusted: the creator of a pod controls every character of them.

The API server only requires that no field is empty.
Source: k8s.io/apimachinery pkg/api/validation/objectmeta.go, validateOwnerReference.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from gputally.model.kube import OwnerReference

_LABEL: Final = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_API_VERSION: Final = re.compile(rf"(?:(?=.{{1,253}}/){_LABEL}(?:\.{_LABEL})*/)?{_LABEL}")
_KIND: Final = re.compile("[A-Za-z](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_MOST_NAME: Final = 253
_MOST_LABEL: Final = 63
_MOST_API_VERSION: Final = _MOST_NAME + len("/") + _MOST_LABEL
_MOST_UID: Final = 128
"""The API server generates UUIDs; other UIDs are accepted up to this length."""


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
    """It will be retried."""
    GIVEN_UP = "given_up"
    """Failed for the last time."""


def controller_of(references: Iterable[OwnerReference] | None) -> OwnerReference | None:
    """The reference to the managing owner; None if such an owner cannot exist, so that no oversized data is stored."""
    found = next((each for each in references or () if each.controller), None)
    return found if found and can_exist(found) else None


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
