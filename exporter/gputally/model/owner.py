"""Owners as references name them, of which whoever may create a pod chooses every character.

The API asks of a reference only that nothing in it is empty.
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
"""The API server makes UUIDs; this is what is kept of others."""


class Owner(Struct, frozen=True, gc=False):
    """What a reference of an object in `namespace` points to.

    Only all of it together tells one owner from another: two tenants may well use the same UID.
    """

    namespace: str
    reference: OwnerReference


class Lookup(StrEnum):
    """How a lookup of an owner ended."""

    FOUND = "found"
    GONE = "gone"
    """There is none of that name, or a later one."""
    FORBIDDEN = "forbidden"
    UNKNOWN_KIND = "unknown_kind"
    """API discovery has no such kind."""
    REFUSED = "refused"
    OVERSIZED = "oversized"
    FAILED = "failed"
    """To be tried again."""
    GIVEN_UP = "given_up"
    """Failed for the last time."""


def controller_of(references: Iterable[OwnerReference] | None) -> OwnerReference | None:
    """The one that manages the object, if it can exist: of another nothing is kept, however long it is."""
    found = next((each for each in references or () if each.controller), None)
    return found if found and can_exist(found) else None


def can_exist(reference: OwnerReference) -> bool:
    """Whether an API server could serve an object of that kind and name."""
    version, kind = reference.api_version, reference.kind
    is_short = len(version) <= _MOST_API_VERSION and len(kind) <= _MOST_LABEL  # or it must not be remembered
    return is_short and _is_kind(version, kind) and is_name(reference.name) and is_uid(reference.uid)


@lru_cache(maxsize=1024)
def _is_kind(api_version: str, kind: str) -> bool:
    return _API_VERSION.fullmatch(api_version) is not None and _KIND.fullmatch(kind) is not None


def is_uid(text: str) -> bool:
    """Whether `text` may be kept as the UID of an object."""
    return 0 < len(text) <= _MOST_UID


def is_name(text: str) -> bool:
    """Whether an object may be called `text`: one segment of a path, without control characters.

    Source: k8s.io/apimachinery pkg/api/validation/path/name.go, IsValidPathSegmentName; the length is that of a
    DNS subdomain.
    """
    segment = 0 < len(text) <= _MOST_NAME and text not in (".", "..") and "/" not in text and "%" not in text
    return segment and text.isprintable()
