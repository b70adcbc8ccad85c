"""Credentials for the API server, and verification of its certificate.

The `kubernetes` package runs the programs and asks the services of kubeconfig users with `exec` or `auth-provider`.
It is used for nothing else, and imported only here and on demand: it costs 20 MB and a quarter of a second.
"""

import base64
import logging
import os
import ssl
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec import Struct

from gputally.errors import ConfigError, Problem
from gputally.kube.kubeconfig import Chosen, User, material

if TYPE_CHECKING:
    from kubernetes.client import Configuration


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


def login_from(chosen: Chosen, paths: Sequence[Path]) -> Login:
    """The login of the user `chosen` from the kubeconfigs `paths`. Blocks; raises ConfigError."""
    try:
        with _without_warnings():
            from kubernetes.client import Configuration  # noqa: PLC0415 - see the top of this file
            from kubernetes.config import load_kube_config  # noqa: PLC0415
    except ModuleNotFoundError:  # the container image has neither the package nor any plugins
        text = "needs the Python package kubernetes, which is missing; use a token, a certificate or a ServiceAccount"
        raise ConfigError([Problem(str(chosen.user_file), f"users[{chosen.user_name}].user", text)]) from None
    configuration = Configuration()
    folders = TemporaryDirectory(prefix="gputally-")
    with _as_config_error(chosen.user_file), folders as folder, _collected_log() as messages:
        load_kube_config(
            config_file=os.pathsep.join(str(path) for path in paths if path.exists()),
            context=chosen.context,
            client_configuration=configuration,
            temp_file_path=folder,
        )
        _check(chosen, configuration, messages)
        certificate, key = configuration.cert_file, configuration.key_file
        return Login(
            authorization=partial(_plugin_authorization, configuration),
            certificate=Path(certificate).read_bytes() if certificate else b"",
            key=Path(key).read_bytes() if key else b"",
        )


def _check(chosen: Chosen, configuration: "Configuration", messages: Sequence[str]) -> None:
    """Reject missing credentials: otherwise an anonymous login ends in an obscure 403."""
    if configuration.api_key or configuration.cert_file:
        return
    field = f"users[{chosen.user_name}].user"
    if chosen.user.exec:
        text = f"{'; '.join(messages) or 'no credentials received'}; run `{chosen.user.exec.command}` by hand"
        raise ConfigError([Problem(str(chosen.user_file), f"{field}.exec", text)])
    text = "returns no credentials; replace it with the exec plugin of your cloud"
    raise ConfigError([Problem(str(chosen.user_file), f"{field}.auth-provider", text)])


def _plugin_authorization(configuration: "Configuration") -> str:
    """The current Authorization header, "" for none; the package's hook refreshes expired tokens."""
    with _collected_log():
        # Releases before 36 keep the header under "authorization".
        header = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    return (header or "").strip()


@contextmanager
def _as_config_error(file: Path) -> Iterator[None]:
    """Convert any error of the package to ConfigError."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:  # the loader raises KeyError, TypeError, OSError and its own
        raise ConfigError([Problem(str(file), "", str(error) or type(error).__name__)]) from error


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress warnings of `requests` and `urllib3` about each other's versions at import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _collected_log() -> Iterator[list[str]]:
    """Collect the package's messages on the root logger, which it writes instead of raising."""
    messages: list[str] = []

    def is_unrelated(record: logging.LogRecord) -> bool:
        if record.module != "kube_config":
            return True
        messages.append(record.getMessage())
        return False

    silent = logging.NullHandler()  # logging.error() adds a handler to a root logger without any
    logging.root.addHandler(silent)
    logging.root.addFilter(is_unrelated)
    try:
        yield messages
    finally:
        logging.root.removeFilter(is_unrelated)
        logging.root.removeHandler(silent)
