"""How an aggregator is reached: by its URL, or by a port that kubectl forwards, with credentials if it requires any."""

import argparse
import asyncio
import base64
import os
import re
import ssl
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gputally.errors import AggregatorUnreachable, ConfigError, Problem
from gputally.model.printable import printable

_FORWARDING: Final = re.compile(rb"Forwarding from 127\.0\.0\.1:(\d+)")
_PATIENCE_SECONDS: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class Service:
    """The aggregator's Service; an empty context or kubeconfig is kubectl's own choice."""

    namespace: str = "gputally"
    name: str = "gputally-aggregator"
    port: int = 9836
    context: str = ""
    kubeconfig: str = ""

    def arguments(self) -> list[str]:
        """The arguments of kubectl."""
        flags = {"context": self.context, "kubeconfig": self.kubeconfig}
        chosen = [f"--{flag}={value}" for flag, value in flags.items() if value]
        return [*chosen, f"--namespace={self.namespace}", "port-forward", f"service/{self.name}", f":{self.port}"]


@asynccontextmanager
async def forwarded(service: Service, *, program: str = "kubectl") -> AsyncIterator[int]:
    """A local port that leads to the service while the context is open. Raises: AggregatorUnreachable."""
    try:
        process = await asyncio.create_subprocess_exec(
            program, *service.arguments(), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
    except FileNotFoundError:
        text = f"{program} is not installed; install it, or give the aggregator's address: --url http://HOST:9836"
        raise AggregatorUnreachable(text) from None
    try:
        yield await _port(process, service)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _port(process: Process, service: Service) -> int:
    assert process.stdout
    assert process.stderr
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _PATIENCE_SECONDS)
    except TimeoutError:
        line = b""
    if match := _FORWARDING.match(line):
        return int(match[1])
    if process.returncode is None:
        process.terminate()
    lines = (await process.stderr.read()).decode(errors="replace").strip().splitlines() or [line.decode().strip()]
    text = f"kubectl cannot forward a port to service {service.name} in namespace {service.namespace}"
    raise AggregatorUnreachable(f"{text}: {lines[-1] or 'no answer'}; use --namespace and --service, or --url")


_FLAGS: Final = {"what": "WHAT", "class_name": "--class"}


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """How to authenticate; empty fields are not used."""

    user: str = ""
    password_file: Path | None = None
    token_file: Path | None = None
    ca_file: Path | None = None

    def headers(self) -> dict[str, str]:
        """The Authorization header. Raises: ConfigError for a file that cannot be read."""
        if self.token_file:
            return {"Authorization": f"Bearer {_secret(self.token_file, '--token-file')}"}
        if self.user and self.password_file:
            return {"Authorization": _basic(self.user, _secret(self.password_file, "--password-file"))}
        return {}

    def tls(self) -> ssl.SSLContext | bool:
        """The context for https URLs. Raises: ConfigError for a file that holds no certificates."""
        if self.ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError([Problem(str(self.ca_file), "--ca-file", f"cannot be used: {error}")]) from None


def _secret(path: Path, flag: str) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise ConfigError([Problem(str(path), flag, f"cannot be read: {error.strerror}")]) from None


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def add_access(command: argparse.ArgumentParser, *, namespace_flags: Sequence[str] = ("-n", "--namespace")) -> None:
    """Add the flags that say where the aggregator is, and those of credentials."""
    where = command.add_argument_group("where the aggregator is").add_argument
    where(
        "--url",
        metavar="URL",
        default=os.environ.get("GPUTALLY_URL", ""),
        help="its address, such as http://localhost:9836; without it, kubectl forwards a port [GPUTALLY_URL]",
    )
    service = Service()
    for names, value, what in (
        (namespace_flags, service.namespace, "its namespace"),
        (("--service",), service.name, "its Service"),
        (("--port",), service.port, "port of the Service"),
    ):
        metavar = names[-1].removeprefix("--").upper()
        where(*names, metavar=metavar, type=type(value), default=value, help=f"{what} [default: %(default)s]")
    where("--context", metavar="NAME", default="", help="context of the kubeconfig; default is the current one")
    where("--kubeconfig", metavar="FILE", default="", help="kubeconfig; default is kubectl's")
    add_credentials(command)


def add_credentials(command: argparse.ArgumentParser) -> None:
    """Add the flags of credentials."""
    secret = command.add_argument_group("credentials, if it requires any")
    secret.add_argument("--user", metavar="NAME", default="", help="user name")
    secret.add_argument("--password-file", type=Path, metavar="FILE", help="file with the password of --user")
    secret.add_argument("--token-file", type=Path, metavar="FILE", help="file with a bearer token")
    secret.add_argument("--ca-file", type=Path, metavar="FILE", help="CA certificate (PEM) of an https address")


def access_problems(parsed: argparse.Namespace) -> list[Problem]:
    """What is wrong with the flags of `add_access`."""
    problems = []
    if parsed.url and not is_url(parsed.url):
        problems.append(Problem("", "--url", f"'{parsed.url}' is not a URL; use one such as http://localhost:9836"))
    if parsed.user and not parsed.password_file:
        problems.append(Problem("", "--user", "requires --password-file"))
    return problems


def service_from(parsed: argparse.Namespace, *, namespace: str) -> Service:
    """The aggregator's Service by the parsed flags."""
    return Service(
        namespace=namespace,
        name=parsed.service,
        port=parsed.port,
        context=parsed.context,
        kubeconfig=parsed.kubeconfig,
    )


def is_url(text: str) -> bool:
    """Whether the text is the URL of an aggregator."""
    return text.startswith(("http://", "https://"))


def credentials_from(parsed: argparse.Namespace) -> Credentials:
    """The parsed flags of credentials."""
    return Credentials(
        user=parsed.user, password_file=parsed.password_file, token_file=parsed.token_file, ca_file=parsed.ca_file
    )


def text_problems(parsed: argparse.Namespace) -> list[Problem]:
    """The arguments that are not UTF-8 text, which no name in Kubernetes is."""
    given = {name: value for name, value in vars(parsed).items() if isinstance(value, str)}
    return [
        Problem("", _FLAGS.get(name, f"--{name.replace('_', '-')}"), f"'{printable(value)}' is not UTF-8 text")
        for name, value in given.items()
        if any("\ud800" <= each <= "\udfff" for each in value)
    ]
