"""TLS and token credentials for requests to agents, reloaded when their files change."""

import ssl
from collections.abc import Callable

from gputally.files.credentials import load_certificate, token, trust_authority
from gputally.files.reread import Files, Reread
from gputally.pulling.choice import AgentChoice


def token_file(choice: AgentChoice) -> Callable[[], str] | None:
    """Tells the token, if there is to be one. Raises: ConfigError when it cannot be read."""
    path = choice.token
    return Reread(lambda files: token(path, files, role="--agents.token-file")) if path else None


def tls_contexts(choice: AgentChoice) -> Callable[[], ssl.SSLContext]:
    """Tells what an agent's certificate is checked against: the authority, else the system's.

    Agents are spoken to by addresses that come and go, which no certificate names: that it is signed by the named
    authority, which should sign for agents alone, is what counts.

    Raises: ConfigError naming the file.
    """
    return Reread(lambda files: _context(choice, files))


def _context(choice: AgentChoice, files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if choice.authority:
        context.check_hostname = False
        trust_authority(context, choice.authority, files, role="--agents.ca-file")
    else:
        context.load_default_certs()
    if choice.certificate:
        load_certificate(context, choice.certificate, choice.key, files, role="--agents.cert-file")
    return context
