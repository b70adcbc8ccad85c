"""How to reach the API server: kubeconfig, service account, exec plugins, certificates, rotating tokens.

The `kubernetes` package reads the configuration and nothing else. It is imported here alone and late:
it costs 20 MB and a quarter of a second.
"""

import asyncio
import ipaddress
import logging
import os
import ssl
import urllib.request
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from gputally.errors import ConfigError, Problem
from gputally.sources.api import Access, Api, new_session
from gputally.sources.kubeconfig import Chosen, choose

if TYPE_CHECKING:
    from kubernetes.client import Configuration

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the operator chose; empty means: find out as kubectl does.

    `kubeconfig` is a path or a list of paths as in the variable KUBECONFIG, `context` one of its contexts.
    """

    kubeconfig: str = ""
    context: str = ""
    service_account: Path = SERVICE_ACCOUNT


@asynccontextmanager
async def connect(choice: Choice) -> AsyncIterator[Api]:
    """An Api for the chosen cluster; nothing is sent yet.

    Raises: ConfigError naming file, field and remedy.
    """
    read = partial(read_access, choice)
    access = await asyncio.to_thread(read)  # reads files, may run an exec plugin
    async with new_session() as session:
        yield Api(session, access, reread=read)


def read_access(choice: Choice) -> Access:
    """The settings as they stand now in files and environment. Blocks; raises ConfigError."""
    if paths := _kubeconfig_paths(choice.kubeconfig):
        return _from_kubeconfig(paths, choice.context)
    if choice.context:
        raise ConfigError([Problem("", "context", f"'{choice.context}' needs a kubeconfig; none was found")])
    return _from_service_account(choice.service_account)


def _kubeconfig_paths(named: str) -> tuple[Path, ...]:
    """The files to merge, in kubectl's order of preference; none means: inside a cluster."""
    paths = (named or os.environ.get("KUBECONFIG", "")).split(os.pathsep)
    if found := tuple(Path(path).expanduser() for path in paths if path):
        return found
    usual = Path("~/.kube/config").expanduser()
    return (usual,) if usual.is_file() else ()


def _from_service_account(folder: Path) -> Access:
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        text = "no kubeconfig found and not inside a cluster; set KUBECONFIG or name a kubeconfig"
        raise ConfigError([Problem("", "kubeconfig", text)])
    with _quietly():
        from kubernetes.client import Configuration  # noqa: PLC0415 - see the top of this file
        from kubernetes.config.incluster_config import InClusterConfigLoader  # noqa: PLC0415
    configuration = Configuration()
    with _mendable(folder, "service account"):
        InClusterConfigLoader(str(folder / "token"), str(folder / "ca.crt")).load_and_set(configuration)
    return _access(configuration, f"the service account token {folder / 'token'}", folder)


def _from_kubeconfig(paths: Sequence[Path], context: str) -> Access:
    chosen = choose(paths, context)
    with _quietly():
        from kubernetes.client import Configuration  # noqa: PLC0415 - see the top of this file
        from kubernetes.config import load_kube_config  # noqa: PLC0415
    configuration = Configuration()
    # The loader writes inline certificates and keys to files; OpenSSL has read them when the folder goes.
    with _mendable(chosen.user_file, ""), TemporaryDirectory(prefix="gputally-") as folder, _root_log() as said:
        load_kube_config(
            config_file=os.pathsep.join(str(path) for path in paths if path.exists()),
            context=chosen.context,
            client_configuration=configuration,
            temp_file_path=folder,
        )
        _check_login(chosen, configuration, said)
        return _access(configuration, f"{chosen.user_file}: users[{chosen.user_name}]", chosen.cluster_file)


def _check_login(chosen: Chosen, configuration: "Configuration", said: Sequence[str]) -> None:
    """A plugin that gave nothing would otherwise end as an anonymous login with an obscure 403."""
    if configuration.api_key or configuration.cert_file:
        return
    field = f"users[{chosen.user_name}].user"
    if chosen.user.exec:
        text = f"{'; '.join(said) or 'no credentials came'}; run `{chosen.user.exec.command}` by hand"
        raise ConfigError([Problem(str(chosen.user_file), f"{field}.exec", text)])
    if chosen.user.auth_provider:
        text = "gives no credentials; replace it by the exec plugin of your cloud"
        raise ConfigError([Problem(str(chosen.user_file), f"{field}.auth-provider", text)])


def _access(configuration: "Configuration", login: str, file: Path) -> Access:
    server = str(configuration.host).rstrip("/")
    return Access(
        server=server,
        login=login,
        authorization=partial(_authorization, configuration),
        tls=_tls(configuration, file) if server.startswith("https") else None,
        server_name=configuration.tls_server_name or None,
        proxy=_proxy(configuration.proxy, server),
    )


def _authorization(configuration: "Configuration") -> str:
    """The Authorization header of this moment, "" for none; the package's hook renews what has expired."""
    with _root_log():
        # Releases before 36 keep the header under "authorization".
        header = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
    return (header or "").strip()


def _tls(configuration: "Configuration", file: Path) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    except OSError as error:
        raise ConfigError([Problem(str(file), "certificate-authority", f"not a PEM certificate: {error}")]) from None
    # From Python 3.13 on the default refuses the authorities of many clusters (no key usage extension).
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        _present(context, configuration, file)
    return context


def _present(context: ssl.SSLContext, configuration: "Configuration", file: Path) -> None:
    try:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except OSError as error:
        text = f"certificate and key do not fit together or are not PEM: {error}"
        raise ConfigError([Problem(str(file), "client-certificate", text)]) from None


def _proxy(proxy: str | None, server: str) -> str | None:
    """The proxy to use; NO_PROXY counts against one from the environment, not against `proxy-url`."""
    host = urlsplit(server).hostname or ""
    from_environment = proxy in urllib.request.getproxies().values()
    return None if not proxy or (from_environment and _bypassed(host)) else proxy


def _bypassed(host: str) -> bool:
    """Whether NO_PROXY names `host`; networks such as 10.0.0.0/8 count, which the standard library ignores."""
    if urllib.request.proxy_bypass(host):
        return True
    exempt = urllib.request.getproxies().get("no", "").split(",")
    return any(_within(host, network.strip()) for network in exempt if "/" in network)


def _within(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


@contextmanager
def _mendable(file: Path, field: str) -> Iterator[None]:
    """Whatever the package raises becomes a ConfigError."""
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:  # the loader lets out KeyError, TypeError, OSError and its own
        raise ConfigError([Problem(str(file), field, str(error) or type(error).__name__)]) from error


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
