"""What an agent shows to those who ask it, and what it expects them to show."""

import ssl
from collections.abc import Callable
from pathlib import Path

from gputally.errors import ConfigError, Problem
from gputally.runtime.agent_settings import AgentSettings
from gputally.sources.agents.credentials import TokenFile


def server_tls(settings: AgentSettings) -> ssl.SSLContext | None:
    """HTTPS with the certificate of the settings, and of clients too if they name an authority; None without.

    Raises: ConfigError naming the file.
    """
    if settings.certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.certificate, settings.key)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        raise _wrong("web.cert-file", settings.certificate, error) from None
    if settings.client_authority:
        try:
            context.load_verify_locations(settings.client_authority)
        except (OSError, ValueError) as error:
            raise _wrong("web.client-ca-file", settings.client_authority, error) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def token_of(settings: AgentSettings) -> Callable[[], str] | None:
    """What reads the token that `/v1/usage` asks for; None when it asks for none. Raises: ConfigError."""
    if settings.token is None:
        return None
    file = TokenFile(settings.token)
    try:
        file.read()
    except (OSError, ValueError) as error:
        raise _wrong("usage.token-file", settings.token, error) from None
    return file.read


def _wrong(flag: str, path: Path, error: Exception) -> ConfigError:
    text = getattr(error, "strerror", None) or str(error)
    return ConfigError([Problem(str(path), f"--{flag}", f"cannot be used: {text}")])
