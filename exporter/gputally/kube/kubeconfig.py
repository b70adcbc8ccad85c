"""Reads and validates kubeconfigs, with errors that say how to fix them.

A missing user or a failing exec plugin is an error, not an anonymous login.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml
from msgspec import Struct

from gputally.errors import ConfigError, Problem


class Cluster(Struct, rename="kebab", frozen=True):
    """Address and CA of the API server."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class Exec(Struct, rename="camel", frozen=True):
    """A program that prints credentials."""

    command: str = ""
    api_version: str = ""


class User(Struct, rename="kebab", frozen=True):
    """The client's credentials."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: dict[str, object] | None = None


class Context(Struct, frozen=True):
    """A cluster and a user by name."""

    cluster: str = ""
    user: str = ""


class NamedCluster(Struct, frozen=True):
    """An item of `clusters`."""

    name: str
    cluster: Cluster | None = None


class NamedUser(Struct, frozen=True):
    """An item of `users`."""

    name: str
    user: User | None = None


class NamedContext(Struct, frozen=True):
    """An item of `contexts`."""

    name: str
    context: Context | None = None


class Document(Struct, rename="kebab", frozen=True):
    """One kubeconfig file; `kubectl` writes empty lists as null."""

    current_context: str | None = None
    clusters: tuple[NamedCluster, ...] | None = None
    users: tuple[NamedUser, ...] | None = None
    contexts: tuple[NamedContext, ...] | None = None


class Chosen(NamedTuple):
    """The context in use, with its cluster and user and the file of each."""

    context: str
    cluster_name: str
    cluster: Cluster
    cluster_file: Path
    user_name: str
    user: User
    user_file: Path


Documents = Sequence[tuple[Path, Document]]
"""Files in the given order: the first definition of a name wins, so dicts are built in reverse."""


def choose(paths: Sequence[Path], context: str = "") -> Chosen:
    """The named or the current context of the files, merged as by kubectl: the first definition wins.

    Raises: ConfigError with every problem found.
    """
    documents = [(path, _read(path)) for path in paths if path.exists()]
    files = ", ".join(map(str, paths))
    if not documents:
        raise ConfigError([Problem(files, "", "no such file; specify an existing kubeconfig")])
    name = context or next((d.current_context for _, d in documents if d.current_context), "")
    contexts = {c.name: (path, c.context) for path, d in reversed(documents) for c in d.contexts or ()}
    if name not in contexts:
        raise ConfigError([Problem(files, "current-context", _unknown("context", name, contexts))])
    path, pair = contexts[name]
    chosen = _resolve(documents, path, name, pair or Context())
    if problems := [*_cluster_problems(chosen), *_user_problems(chosen)]:
        raise ConfigError(problems)
    return chosen


def material(file: Path, path: str, data: str) -> bytes:
    """PEM from base64 `data` in the kubeconfig `file`, or from `path` relative to it. Raises: OSError."""
    if data:
        return base64.b64decode(data)
    return (file.parent / path).read_bytes() if path else b""


def _read(path: Path) -> Document:
    try:
        return msgspec.convert(yaml.safe_load(path.read_bytes()), Document, strict=False)
    except OSError as error:
        raise ConfigError([Problem(str(path), "", f"cannot be read: {error.strerror}")]) from None
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$.")
        raise ConfigError([Problem(str(path), where.rstrip("`"), f"not a kubeconfig: {text}")]) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError([Problem(str(path), _line(error), "not YAML; compare with `kubectl config view`")]) from None


def _line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f"line {mark.line + 1}" if mark else ""


def _resolve(documents: Documents, path: Path, name: str, pair: Context) -> Chosen:
    clusters = {c.name: (file, c.cluster) for file, d in reversed(documents) for c in d.clusters or ()}
    users = {u.name: (file, u.user) for file, d in reversed(documents) for u in d.users or ()}
    users.setdefault("", (path, None))  # a context without a user logs in anonymously
    field = f"contexts[{name}].context"
    problems = []
    if pair.cluster not in clusters:
        problems.append(Problem(str(path), f"{field}.cluster", _unknown("cluster", pair.cluster, clusters)))
    if pair.user not in users:
        problems.append(Problem(str(path), f"{field}.user", _unknown("user", pair.user, users)))
    if problems:
        raise ConfigError(problems)
    cluster_file, cluster = clusters[pair.cluster]
    user_file, user = users[pair.user]
    return Chosen(name, pair.cluster, cluster or Cluster(), cluster_file, pair.user, user or User(), user_file)


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = ", ".join(sorted(filter(None, known))) or "none is defined"
    return f"unknown {what} '{name}'; known: {names}" if name else f"no {what} is set; known: {names}"


def _cluster_problems(chosen: Chosen) -> Iterator[Problem]:
    cluster, file, field = chosen.cluster, chosen.cluster_file, f"clusters[{chosen.cluster_name}].cluster"
    if not cluster.server.startswith(("http://", "https://")):
        yield Problem(str(file), f"{field}.server", f"'{cluster.server}' is not a URL; use https://HOST:PORT")
    if cluster.proxy_url and not cluster.proxy_url.startswith(("http://", "https://")):
        yield Problem(str(file), f"{field}.proxy-url", f"'{cluster.proxy_url}': use an http or https proxy")
    yield from _material(file, f"{field}.certificate-authority", cluster.certificate_authority_data)
    if not cluster.certificate_authority_data:
        yield from _missing(file, f"{field}.certificate-authority", cluster.certificate_authority)


def _user_problems(chosen: Chosen) -> Iterator[Problem]:
    user, file, field = chosen.user, chosen.user_file, f"users[{chosen.user_name}].user"
    for name, path, data in (
        ("client-certificate", user.client_certificate, user.client_certificate_data),
        ("client-key", user.client_key, user.client_key_data),
        ("tokenFile", user.token_file, ""),
    ):
        yield from _material(file, f"{field}.{name}", data)
        if not data:
            yield from _missing(file, f"{field}.{name}", path)
    if user.exec and not user.exec.command:
        yield Problem(str(file), f"{field}.exec.command", "missing; add the program that prints the credentials")
    if user.exec and not user.exec.api_version:
        yield Problem(str(file), f"{field}.exec.apiVersion", "missing; use client.authentication.k8s.io/v1")


def _missing(file: Path, field: str, path: str) -> Iterator[Problem]:
    if path and not (file.parent / path).is_file():
        yield Problem(str(file), field, f"no such file: {file.parent / path}")


def _material(file: Path, field: str, data: str) -> Iterator[Problem]:
    try:
        base64.b64decode(data)
    except binascii.Error:
        yield Problem(str(file), f"{field}-data", "not base64; it may have been cut when it was copied")
