"""Decodes the answers of an aggregator."""

from typing import Protocol, TypeVar

import msgspec

from gputally.errors import AggregatorUnreachable

T = TypeVar("T")


class Versioned(Protocol):
    """A document of the API."""

    @property
    def version(self) -> int:
        """It is raised when a field is removed or changes its meaning."""


V = TypeVar("V", bound=Versioned)


def decoded(body: bytes, kind: type[T]) -> T:
    """The document. Raises: AggregatorUnreachable for an answer of another program."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise AggregatorUnreachable(f"not an answer of gputally: {error}; check --url") from None


def of_version(body: bytes, kind: type[V], version: int) -> V:
    """The document. Raises: AggregatorUnreachable, also for one of another version."""
    document = decoded(body, kind)
    if document.version != version:
        text = f"the aggregator answers in version {document.version}; use gputally of the aggregator's version"
        raise AggregatorUnreachable(text)
    return document
