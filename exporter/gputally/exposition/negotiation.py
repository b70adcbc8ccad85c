"""Content negotiation: the format and encoding that a scraper requests, from its header values."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

OPENMETRICS: Final = "application/openmetrics-text"
TEXT: Final = "text/plain"
_VERSIONS: Final = {OPENMETRICS: ("1.0.0", "0.0.1"), TEXT: ("0.0.4", "1.0.0")}
"""The supported versions of each type; the first is the default for a request without a version."""
_ANY: Final = ("*/*", "text/*")
_ESCAPING: Final = frozenset({"allow-utf-8", "underscores", "dots", "values"})


class Media(Struct, frozen=True, kw_only=True):
    """The format to write and the Content-Type that names it."""

    openmetrics: bool
    content_type: str


class _Range(NamedTuple):
    """One entry of an Accept header; a missing or broken quality counts as 1."""

    name: str
    parameters: dict[str, str]
    quality: float


PLAIN: Final = Media(openmetrics=False, content_type="text/plain; version=0.0.4; charset=utf-8")
"""The default for requests without a supported format, as in Prometheus; it is readable for humans."""


def media(accept: str) -> Media:
    """The supported format that the Accept header prefers; the first one listed wins a tie.

    Our names need no escaping, so all escaping schemes yield the same bytes and are only confirmed.
    """
    choices = [(entry.quality, choice) for entry in _ranges(accept) if (choice := _offer(entry))]
    quality, choice = max(choices, key=lambda scored: scored[0], default=(0.0, PLAIN))
    return choice if quality > 0 else PLAIN


def gzip_accepted(accept_encoding: str) -> bool:
    """Whether the Accept-Encoding header allows gzip, by name or by `*`."""
    qualities = {entry.name: entry.quality for entry in _ranges(accept_encoding)}
    return qualities.get("gzip", qualities.get("*", 0.0)) > 0


def _ranges(header: str) -> Iterator[_Range]:
    for entry in header.split(","):
        name, *rest = (part.strip() for part in entry.split(";"))
        pairs = (part.partition("=") for part in rest)
        parameters = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        if name:
            yield _Range(name.lower(), parameters, _quality(parameters.get("q", "1")))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def _offer(entry: _Range) -> Media | None:
    if entry.name in _ANY:
        return PLAIN
    versions = _VERSIONS.get(entry.name, ())
    version = entry.parameters.get("version", versions[0] if versions else "")
    if version not in versions:
        return None
    content_type = f"{entry.name}; version={version}; charset=utf-8"
    if entry.parameters.get("version") == "1.0.0":  # older versions do not know the parameter, and may fail on it
        content_type += f"; escaping={_escaping(entry)}"
    return Media(openmetrics=entry.name == OPENMETRICS, content_type=content_type)


def _escaping(entry: _Range) -> str:
    requested = entry.parameters.get("escaping", "")
    return requested if requested in _ESCAPING else "underscores"
