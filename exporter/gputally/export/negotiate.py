"""Which format and encoding a scraper asks for. Pure: header values in, a choice out."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

OPENMETRICS: Final = "application/openmetrics-text"
TEXT: Final = "text/plain"
_VERSIONS: Final = {OPENMETRICS: ("1.0.0", "0.0.1"), TEXT: ("0.0.4", "1.0.0")}
"""What we write of each type; the first is the answer to a request without a version."""
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
"""The answer to whoever asks for nothing that we know: Prometheus does the same, and a person can read it."""


def media(accept: str) -> Media:
    """The format that the Accept header likes best among those we write; the first one named wins a tie.

    Our names need no escaping, so each escaping scheme is met by the same bytes and only confirmed.
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
    if entry.parameters.get("version") == "1.0.0":  # escaping came with it; older readers stumble over the parameter
        content_type += f"; escaping={_escaping(entry)}"
    return Media(openmetrics=entry.name == OPENMETRICS, content_type=content_type)


def _escaping(entry: _Range) -> str:
    asked = entry.parameters.get("escaping", "")
    return asked if asked in _ESCAPING else "underscores"
