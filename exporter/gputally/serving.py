"""The access policy and the certificates of this process, reloaded from their files on change."""

from collections.abc import Callable
from pathlib import Path

from gputally.export.access_policy import AccessPolicy, door
from gputally.files.credentials import token
from gputally.files.reread import Files, Reread


def doors(path: Path | None) -> Callable[[], AccessPolicy]:
    """The access policy of the web configuration at `path`; without it, everything is allowed. Raises: ConfigError."""
    return Reread(lambda files: _door(path, files)) if path else AccessPolicy


def own_token(path: Path | None, page: str, *, role: str) -> dict[str, Callable[[], str]]:
    """The token in the file at `path`, if any, as the token that `page` requires. Raises: ConfigError."""
    return {page: Reread(lambda files: token(path, files, role=role))} if path else {}


def _door(path: Path, files: Files) -> AccessPolicy:
    from gputally.config.web_file import read_web_config  # noqa: PLC0415 - an agent without such a file needs no YAML

    return door(read_web_config(files.of(path)), files)
