"""Connection to the API server: kubeconfig, service account, exec plugins, certificates, rotating tokens."""

import asyncio
import ipaddress
import os
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gputally.errors import ConfigError, Problem
from gputally.kube import credentials
from gputally.kube.api import Access, Api, new_session
from gputally.kube.credentials import Login, of_user, tls_context, token_of
from gputally.kube.kubeconfig import Chosen, choose, material
from gputally.kube.server_time import OnAnswer

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The configured kubeconfig and context; empty fields use kubectl's defaults.

    `kubeconfig` is a path or a list of paths as in the variable KUBECONFIG, `context` one of its contexts.
    """

    kubeconfig: str = ""
    context: str = ""
    service_account: Path = SERVICE_ACCOUNT


@asynccontextmanager
async def connect(choice: Choice, *, on_answer: OnAnswer | None = None) -> AsyncIterator[Api]:
    """An Api for the chosen cluster, which calls `on_answer` for every response; nothing is sent yet.

    Raises: ConfigError with file, field and fix.
    """
    read = partial(read_access, choice)
    access = await asyncio.to_thread(read)  # reads files, may run an exec plugin
    async with new_session() as session:
        yield Api(session, access, reread=read, on_answer=on_answer)


def read_access(choice: Choice) -> Access:
    """The current settings from files and environment. Blocks; raises ConfigError."""
    if paths := _kubeconfig_paths(choice.kubeconfig):
        return _from_kubeconfig(paths, choice.context)
    if choice.context:
        raise ConfigError([Problem("", "context", f"'{choice.context}' needs a kubeconfig, but none was found")])
    return _from_service_account(choice.service_account)


def _kubeconfig_paths(configured: str) -> tuple[Path, ...]:
    """The files to merge, in kubectl's order of preference; empty inside a cluster."""
    paths = (configured or os.environ.get("KUBECONFIG", "")).split(os.pathsep)
    if found := tuple(Path(path).expanduser() for path in paths if path):
        return found
    default = Path("~/.kube/config").expanduser()
    return (default,) if default.is_file() else ()


def _from_service_account(folder: Path) -> Access:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not (host and port):
        text = "no kubeconfig found and not inside a cluster; set KUBECONFIG or specify a kubeconfig"
        raise ConfigError([Problem("", "kubeconfig", text)])
    token, authority = folder / "token", folder / "ca.crt"
    if missing := [Problem(str(file), "", "no such file") for file in (token, authority) if not file.is_file()]:
        raise ConfigError(missing)
    server, login = f"https://{f'[{host}]' if ':' in host else host}:{port}", token_of(token)
    return Access(
        server=server,
        login=f"the service account token {token}",
        authorization=login.authorization,
        tls=tls_context(authority.read_bytes(), login, file=authority),
        proxy=_proxy(server),
    )


def _from_kubeconfig(paths: Sequence[Path], context: str) -> Access:
    chosen = choose(paths, context)
    cluster, file = chosen.cluster, chosen.cluster_file
    try:
        login = _login(chosen, paths)
        authority = material(file, cluster.certificate_authority, cluster.certificate_authority_data)
    except OSError as error:
        raise ConfigError([Problem(str(error.filename), "", f"cannot be read: {error.strerror}")]) from None
    secure, verify = cluster.server.startswith("https"), not cluster.insecure_skip_tls_verify
    return Access(
        server=cluster.server.rstrip("/"),
        login=f"{chosen.user_file}: users[{chosen.user_name}]",
        authorization=login.authorization,
        tls=tls_context(authority, login, file=file, verify=verify) if secure else None,
        server_name=cluster.tls_server_name or None,
        proxy=cluster.proxy_url or _proxy(cluster.server),
    )


def _login(chosen: Chosen, paths: Sequence[Path]) -> Login:
    user = chosen.user
    has_token = user.token or user.token_file
    needs_plugin = user.auth_provider or (user.exec and not has_token)
    return credentials.login_from(chosen, paths) if needs_plugin else of_user(user, chosen.user_file)


def _proxy(server: str) -> str | None:
    """The proxy for `server` from the environment."""
    proxy = urllib.request.getproxies().get(urlsplit(server).scheme)
    return None if not proxy or _bypassed(urlsplit(server).hostname or "") else proxy


def _bypassed(host: str) -> bool:
    """Whether NO_PROXY contains `host`, also in a network such as 10.0.0.0/8, which the standard library ignores."""
    if urllib.request.proxy_bypass(host):
        return True
    exempt = urllib.request.getproxies().get("no", "").split(",")
    return any(_within(host, network.strip()) for network in exempt if "/" in network)


def _within(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
