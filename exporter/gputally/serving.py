"""Who may ask this process, and how it proves who it is, as its files say now."""

from collections.abc import Callable
from pathlib import Path

from gputally.export.access_policy import AccessPolicy, door
from gputally.files.credentials import token
from gputally.files.reread import Files, Reread


def doors(path: Path | None) -> Callable[[], AccessPolicy]:
    """Tells who is let in by the web configuration at `path`; everyone without one. Raises: ConfigError."""
    return Reread(lambda files: _door(path, files)) if path else AccessPolicy


def own_token(path: Path | None, page: str, *, role: str) -> dict[str, Callable[[], str]]:
    """The token in the file at `path`, if there is to be one, as that of `page`. Raises: ConfigError."""
    return {page: Reread(lambda files: token(path, files, role=role))} if path else {}


def _door(path: Path, files: Files) -> AccessPolicy:
    from gputally.config.web_file import read_web_config  # noqa: PLC0415 - an agent without such a file needs no YAML

    return door(read_web_config(files.of(path)), files)
