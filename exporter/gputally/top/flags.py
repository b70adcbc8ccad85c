"""The flags of `gputally top`."""

import argparse
import os
from pathlib import Path

from gputally.errors import ConfigError, Problem
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


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.epilog, command.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    add = command.add_argument
    add("--by", choices=tuple(BY), default="tier", help="what a row stands for [default: tier]")
    add("--once", action="store_true", help="print one table and exit; so does output to a file or pipe")
    add("--output", choices=("table", "json"), default="table", help="json prints the response of /api/v1/allocations")
    add("--interval", type=float, metavar="SECONDS", default=2.0, help="time between two requests [default: 2]")
    where = command.add_argument_group("where the aggregator is").add_argument
    where(
        "--url",
        metavar="URL",
        default=os.environ.get("GPUTALLY_URL", ""),
        help="its address, such as http://localhost:9836; without it, kubectl forwards a port [GPUTALLY_URL]",
    )
    service = Service()
    for flag, value, what in (
        ("namespace", service.namespace, "its namespace"),
        ("service", service.name, "its Service"),
        ("port", service.port, "port of the Service"),
    ):
        names = (*(("-n",) if flag == "namespace" else ()), f"--{flag}")
        where(*names, metavar=flag.upper(), type=type(value), default=value, help=f"{what} [default: %(default)s]")
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
    problems = []
    if parsed.url and not is_url(parsed.url):
        problems.append(Problem("", "--url", f"'{parsed.url}' is not a URL; use one such as http://localhost:9836"))
    if not parsed.interval > 0:
        problems.append(Problem("", "--interval", f"{parsed.interval:g} is not a valid interval; use a number above 0"))
    if parsed.user and not parsed.password_file:
        problems.append(Problem("", "--user", "requires --password-file"))
    if problems:
        raise ConfigError(problems)
    return Options(
        url=parsed.url,
        service=Service(
            namespace=parsed.namespace,
            name=parsed.service,
            port=parsed.port,
            context=parsed.context,
            kubeconfig=parsed.kubeconfig,
        ),
        credentials=credentials_from(parsed),
        by=parsed.by,
        interval_s=parsed.interval,
        once=parsed.once,
        output=parsed.output,
    )


def is_url(text: str) -> bool:
    """Whether the text is the URL of an aggregator."""
    return text.startswith(("http://", "https://"))


def credentials_from(parsed: argparse.Namespace) -> Credentials:
    """The parsed flags of credentials."""
    return Credentials(
        user=parsed.user, password_file=parsed.password_file, token_file=parsed.token_file, ca_file=parsed.ca_file
    )
