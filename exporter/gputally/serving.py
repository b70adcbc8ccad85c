"""The access policy and the certificates of this process, reloaded from their files on change."""

from collections.abc import Callable
from pathlib import Path

from gputally.export.access_policy import AccessPolicy, access_policy
from gputally.files.credentials import token
from gputally.files.reread import Files, Reread


def policy_source(path: Path | None) -> Callable[[], AccessPolicy]:
    """The access policy of the web configuration at `path`; without it, everything is allowed. Raises: ConfigError."""
    return Reread(lambda files: _load_policy(path, files)) if path else AccessPolicy


def own_token(path: Path | None, page: str, *, role: str) -> dict[str, Callable[[], str]]:
    """The token that `page` requires, from the file at `path`, if any. Raises: ConfigError."""
    return {page: Reread(lambda files: token(path, files, role=role))} if path else {}


def _load_policy(path: Path, files: Files) -> AccessPolicy:
    from gputally.config.web_file import read_web_config  # noqa: PLC0415 - an agent without such a file needs no YAML

    return access_policy(read_web_config(files.of(path)), files)
