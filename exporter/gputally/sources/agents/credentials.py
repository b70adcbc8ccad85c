"""What we show to agents, and what we expect them to show."""

import ssl
from pathlib import Path
from typing import Final

from gputally.errors import ConfigError, Problem
from gputally.sources.agents.choice import AgentChoice

_State = tuple[int, int, int]


class TokenFile:
    """A bearer token that others replace in its file now and then: it is read again when that has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state: _State | None = None
        self._token = ""

    def read(self) -> str:
        """The token as it stands now. Raises: OSError, or ValueError for what no header can hold."""
        found = self.path.stat()
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        if state != self._state:
            token = self.path.read_text(encoding="ascii").strip()
            if not token.isprintable() or not token:
                raise ValueError("holds no token of one line")
            self._token, self._state = token, state
        return self._token


def token_file(choice: AgentChoice) -> TokenFile | None:
    """The file of the token, if there is to be one. Raises: ConfigError when it cannot be read."""
    if choice.token is None:
        return None
    file = TokenFile(choice.token)
    try:
        file.read()
    except (OSError, ValueError) as error:
        raise _wrong(choice.token, error) from None
    return file


def tls_context(choice: AgentChoice) -> ssl.SSLContext:
    """What an agent's certificate is checked against: the authority, else the system's.

    Agents are spoken to by addresses that come and go, which no certificate names: that it is signed by the named
    authority, which should sign for agents alone, is what counts.

    Raises: ConfigError naming the file.
    """
    try:
        context = ssl.create_default_context(cafile=choice.authority)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise _wrong(choice.authority or Path(), error) from None
    context.check_hostname = choice.authority is None
    if choice.certificate:
        try:
            context.load_cert_chain(choice.certificate, choice.key)
        except (OSError, ValueError) as error:
            raise _wrong(choice.certificate, error) from None
    return context


def _wrong(file: Path, error: Exception) -> ConfigError:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ConfigError([Problem(str(file), "", f"cannot be used: {text}{_REMEDY}")])


_REMEDY: Final = "; name a file that can be read, with a token of one line or with PEM"
