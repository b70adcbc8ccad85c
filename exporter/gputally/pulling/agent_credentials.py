"""TLS and token credentials for requests to agents, reloaded when their files change."""

import ssl
from collections.abc import Callable

from gputally.files.certificate import expiry_s
from gputally.files.credentials import load_certificate, token, trust_authority
from gputally.files.reread import Files, Reread
from gputally.pulling.agent_options import AgentOptions


def token_file(options: AgentOptions) -> Callable[[], str] | None:
    """A function that returns the current token; None if no token is configured. Raises: ConfigError if unreadable."""
    path = options.token
    return Reread(lambda files: token(path, files, role="--agents.token-file")) if path else None


def tls_contexts(options: AgentOptions) -> Callable[[], ssl.SSLContext]:
    """A function that returns the current TLS context, with the configured CA or else the system's CAs.

    With a configured CA, host names are not verified: requests go to pod IPs, which certificates do not contain. That
    CA should sign certificates of agents only.

    Raises: ConfigError with the file name.
    """
    return Reread(lambda files: _context(options, files))


def client_certificate_expiry(options: AgentOptions) -> Callable[[], int | None] | None:
    """A function that returns when the client certificate expires (s); None if no certificate is configured."""
    path = options.certificate
    return Reread(lambda files: expiry_s(path, files)) if path else None


def _context(options: AgentOptions, files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if options.authority:
        context.check_hostname = False
        trust_authority(context, options.authority, files, role="--agents.ca-file")
    else:
        context.load_default_certs()
    if options.certificate:
        load_certificate(context, options.certificate, options.key, files, role="--agents.cert-file")
    return context
