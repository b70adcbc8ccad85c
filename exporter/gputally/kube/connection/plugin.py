"""Credentials that a program or a service gives: kubeconfig users with `exec` or `auth-provider`.

The `kubernetes` package gets them, and does nothing else. It is imported here alone and late: it costs 20 MB and a
quarter of a second.
"""

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from gputally.errors import ConfigError, Problem
from gputally.kube.connection.kubeconfig import Chosen
from gputally.kube.connection.login import Login

if TYPE_CHECKING:
    from kubernetes.client import Configuration


def ask(chosen: Chosen, paths: Sequence[Path]) -> Login:
    """The login of the user `chosen` from the kubeconfigs `paths`. Blocks; raises ConfigError."""
    try:
        with _quietly():
            from kubernetes.client import Configuration  # noqa: PLC0415 - see the top of this file
            from kubernetes.config import load_kube_config  # noqa: PLC0415
    except ModuleNotFoundError:  # the container image has neither the package nor the programs that it starts
        text = "needs the Python package kubernetes, which is missing; use a token, a certificate or a ServiceAccount"
        raise ConfigError([Problem(str(chosen.user_file), f"users[{chosen.user_name}].user", text)]) from None
    configuration = Configuration()
    with _mendable(chosen.user_file), TemporaryDirectory(prefix="gputally-") as folder, _root_log() as said:
        load_kube_config(
            config_file=os.pathsep.join(str(path) for path in paths if path.exists()),
            context=chosen.context,
            client_configuration=configuration,
            temp_file_path=folder,
        )
        _check(chosen, configuration, said)
        certificate, key = configuration.cert_file, configuration.key_file
        return Login(
            authorization=partial(_authorization, configuration),
            certificate=Path(certificate).read_bytes() if certificate else b"",
            key=Path(key).read_bytes() if key else b"",
        )


def _check(chosen: Chosen, configuration: "Configuration", said: Sequence[str]) -> None:
    """A plugin that gave nothing would otherwise end as an anonymous login with an obscure 403."""
    if configuration.api_key or configuration.cert_file:
        return
    field = f"users[{chosen.user_name}].user"
    if chosen.user.exec:
        text = f"{'; '.join(said) or 'no credentials received'}; run `{chosen.user.exec.command}` by hand"
        raise ConfigError([Problem(str(chosen.user_file), f"{field}.exec", text)])
    text = "returns no credentials; replace it with the exec plugin of your cloud"
    raise ConfigError([Problem(str(chosen.user_file), f"{field}.auth-provider", text)])


def _authorization(configuration: "Configuration") -> str:
    """The Authorization header of this moment, "" for none; the package's hook renews what has expired."""
    with _root_log():
        # Releases before 36 keep the header under "authorization".
        header = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    return (header or "").strip()


@contextmanager
def _mendable(file: Path) -> Iterator[None]:
    """Whatever the package raises becomes a ConfigError."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:  # the loader lets out KeyError, TypeError, OSError and its own
        raise ConfigError([Problem(str(file), "", str(error) or type(error).__name__)]) from error


@contextmanager
def _quietly() -> Iterator[None]:
    """Imports of `requests` and `urllib3` warn of versions of each other that do not concern us."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _root_log() -> Iterator[list[str]]:
    """What the package logs on the root logger where it should raise, collected instead of printed."""
    said: list[str] = []

    def other(record: logging.LogRecord) -> bool:
        if record.module != "kube_config":
            return True
        said.append(record.getMessage())
        return False

    silent = logging.NullHandler()  # logging.error() gives a root logger without handlers one of its own
    logging.root.addHandler(silent)
    logging.root.addFilter(other)
    try:
        yield said
    finally:
        logging.root.removeFilter(other)
        logging.root.removeHandler(silent)
