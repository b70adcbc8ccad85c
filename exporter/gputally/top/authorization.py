"""How `gputally top` authenticates."""

import base64
import ssl
from dataclasses import dataclass
from pathlib import Path

from gputally.errors import ConfigError, Problem


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """How to authenticate; empty fields are not used."""

    user: str = ""
    password_file: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None

    def headers(self) -> dict[str, str]:
        """The Authorization header. Raises: ConfigError for a file that cannot be read."""
        if self.token_file:
            return {"Authorization": f"Bearer {_secret(self.token_file, '--token-file')}"}
        if self.user and self.password_file:
            return {"Authorization": _basic(self.user, _secret(self.password_file, "--password-file"))}
        return {}

    def tls(self) -> ssl.SSLContext | bool:
        """The context for https URLs. Raises: ConfigError for a file that holds no certificates."""
        if self.ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError([Problem(str(self.ca_file), "--ca-file", f"cannot be used: {error}")]) from None


def _secret(path: Path, flag: str) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ConfigError([Problem(str(path), flag, f"cannot be read: {error.strerror}")]) from None


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
