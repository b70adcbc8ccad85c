"""The flags of `gputally top`."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from gputally.errors import ConfigError, Problem
from gputally.process.optional_package import needing
from gputally.process.until_stopped import run_until_stopped
from gputally.setting import add_epilog
from gputally.top.authorization import Credentials
from gputally.top.groups import BY
from gputally.top.options import Options, Service

EXAMPLES = """\
examples:
  gputally top                            live, through kubectl and the current context
  gputally top --by job                   who runs what, the most GPUs first
  gputally top --once --by tenant         one table, for scripts and chat
  gputally top --url http://gpu.example:9836 --output json | jq '.pods[] | select(.state == "pending")'

keys: t tier, e tenant, j job, n node, m model, p pod, q quit
"""


def add_top_flags(command: argparse.ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_top)
    add_epilog(command, EXAMPLES)
    add = command.add_argument
    add("--by", choices=tuple(BY), default="tier", help="what a row stands for [default: tier]")
    add("--once", action="store_true", help="print one table and exit; so does output to a file or pipe")
    add("--output", choices=("table", "json"), default="table", help="json prints the response of /api/v1/allocations")
    add("--interval", type=float, metavar="SECONDS", default=2.0, help="time between two requests [default: 2]")
    add_access(command)


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


def options_from(parsed: argparse.Namespace) -> Options:
    """The parsed flags. Raises: ConfigError."""
    problems = access_problems(parsed)
    if not parsed.interval > 0:
        problems.append(Problem("", "--interval", f"{parsed.interval:g} is not a valid interval; use a number above 0"))
    if problems:
        raise ConfigError(problems)
    return Options(
        url=parsed.url,
        service=service_from(parsed, namespace=parsed.namespace),
        credentials=credentials_from(parsed),
        by=parsed.by,
        interval_s=parsed.interval,
        once=parsed.once,
        output=parsed.output,
    )


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


def _top(parsed: argparse.Namespace) -> int:
    """Show the allocations, once or live."""
    with needing("gputally top needs it: pip install 'gputally[terminal]'"):
        from gputally.top.top import run  # noqa: PLC0415 - needs the extra `terminal`

    options = options_from(parsed)
    return run_until_stopped(lambda: run(options))
