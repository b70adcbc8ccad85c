"""How we prove to the API server who we are, and it to us."""

import base64
import ssl
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from gputally.errors import ConfigError, Problem
from gputally.kube.connection.kubeconfig import User, material


class Login(Struct, frozen=True, kw_only=True):
    """`authorization` gives the header of this moment, "" for none; it may block. Certificate and key are PEM."""

    authorization: Callable[[], str]
    certificate: bytes = b""
    key: bytes = b""


def of_user(user: User, file: Path) -> Login:
    """The login that a kubeconfig spells out for `user`, nobody's if none. Raises: OSError."""
    return Login(
        authorization=_authorization(user, file),
        certificate=material(file, user.client_certificate, user.client_certificate_data),
        key=material(file, user.client_key, user.client_key_data),
    )


def token_of(file: Path) -> Login:
    """A token that others replace in its file now and then: it is read for every request."""
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
    """What to check the server against: `authority` (PEM; without it the system's). Errors name `file`.

    Certificates are ASCII; comments between them may be anything.
    """
    try:
        context = ssl.create_default_context(cadata=authority.decode("ascii", errors="ignore") or None)
    except (OSError, ValueError) as error:
        raise ConfigError([Problem(str(file), "certificate-authority", f"not a PEM certificate: {error}")]) from None
    # From Python 3.13 on the default refuses the authorities of many clusters (no key usage extension).
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if login.certificate:
        _present(context, login, file)
    return context


def _present(context: ssl.SSLContext, login: Login, file: Path) -> None:
    """OpenSSL takes a key from a file alone; it has read it when the folder goes."""
    with TemporaryDirectory(prefix="gputally-") as folder:
        certificate, key = Path(folder, "certificate"), Path(folder, "key")
        certificate.write_bytes(login.certificate)
        key.write_bytes(login.key)
        try:
            context.load_cert_chain(certificate, key)
        except OSError as error:
            text = f"certificate and key do not match or are not PEM: {error}"
            raise ConfigError([Problem(str(file), "client-certificate", text)]) from None
