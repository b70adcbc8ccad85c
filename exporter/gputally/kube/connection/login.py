"""Credentials for the API server, and verification of its certificate."""

import base64
import ssl
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from gputally.errors import ConfigError, Problem
from gputally.kube.connection.kubeconfig import User, material


class Login(Struct, frozen=True, kw_only=True):
    """`authorization` returns the current header, "" for none; it may block. Certificate and key are PEM."""

    authorization: Callable[[], str]
    certificate: bytes = b""
    key: bytes = b""


def of_user(user: User, file: Path) -> Login:
    """The login from the static credentials of `user`, anonymous without any. Raises: OSError."""
    return Login(
        authorization=_authorization(user, file),
        certificate=material(file, user.client_certificate, user.client_certificate_data),
        key=material(file, user.client_key, user.client_key_data),
    )


def token_of(file: Path) -> Login:
    """A token file that may be rotated: it is read for every request."""
    return Login(authorization=lambda: f"Bearer {file.read_text().strip()}")


def _authorization(user: User, file: Path) -> Callable[[], str]:
    if user.token_file:
        return token_of(file.parent / user.token_file).authorization
    header = ""
    if user.token:
        header = f"Bearer {user.token}"
    elif user.username:
        header = "Basic " + base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
    return lambda: header


def tls_context(authority: bytes, login: Login, *, file: Path, verify: bool = True) -> ssl.SSLContext:
    """A TLS context that trusts `authority` (PEM; the system's CAs without it). Errors name `file`.

    Certificates are ASCII; comments between them may have any encoding.
    """
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii", errors="ignore") or None)
    except (OSError, ValueError) as error:
        raise ConfigError([Problem(str(file), "certificate-authority", f"not a PEM certificate: {error}")]) from None
    # Python 3.13's default rejects the CAs of many clusters (no key usage extension).
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if login.certificate:
        _load_client_certificate(context, login, file)
    return context


def _load_client_certificate(context: ssl.SSLContext, login: Login, file: Path) -> None:
    """Load the client certificate. OpenSSL reads keys only from files, here from a temporary folder."""
    with TemporaryDirectory(prefix="gputally-") as folder:
        certificate, key = Path(folder, "certificate"), Path(folder, "key")
        certificate.write_bytes(login.certificate)
        key.write_bytes(login.key)
        try:
            context.load_cert_chain(certificate, key)
        except OSError as error:
            text = f"certificate and key do not match or are not PEM: {error}"
            raise ConfigError([Problem(str(file), "client-certificate", text)]) from None
