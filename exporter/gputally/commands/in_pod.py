"""The ledger that a command reads: a file here, or with `kubectl gputally`, the one in the aggregator's pod."""

import argparse
import os
import subprocess
from collections.abc import Container, Mapping, Sequence
from typing import Final

from gputally.errors import AggregatorUnreachable
from gputally.process.settings import Setting, variable

LEDGER: Final = Setting("ledger", "gputally.db", "FILE", "SQLite ledger, as a path or sqlite:///PATH")
"""The flag of all commands that read a ledger."""
KUBECTL_EXEC: Final = "kubectl exec -n gputally deploy/gputally-aggregator --"
PLUGIN_HELP: Final = """\
as kubectl gputally, without --ledger: runs in the aggregator's pod
  -n, --namespace NAMESPACE   its namespace [default: gputally]
  --deployment NAME           its Deployment [default: gputally-aggregator]
  --context NAME              context of the kubeconfig; default is the current one
  --kubeconfig FILE           kubeconfig; default is kubectl's
"""


def remote_command(
    arguments: Sequence[str], commands: Container[str], *, environment: Mapping[str, str] = os.environ
) -> list[str] | None:
    """The kubectl command for these arguments of the plugin; None if they are for none of `commands`, or not remote."""
    is_local = variable("ledger") in environment or any(each.partition("=")[0] == "--ledger" for each in arguments)
    if not arguments or arguments[0] not in commands or is_local or {"-h", "--help"} & set(arguments):
        return None
    access, rest = _access().parse_known_args(list(arguments))
    chosen = [f"--{name}={value}" for name in ("context", "kubeconfig") if (value := getattr(access, name))]
    standard_input = ["-i"] if any(each == "-" or each.endswith("=-") for each in rest) else []
    target = f"deploy/{access.deployment}"
    return ["kubectl", *chosen, "exec", *standard_input, "-n", access.namespace, target, "--", "gputally", *rest]


def run_remotely(command: Sequence[str]) -> int:
    """Run the kubectl command and return its exit status. Raises: AggregatorUnreachable without kubectl."""
    try:
        return subprocess.run(command, check=False).returncode  # noqa: S603 - kubectl, with the user's own arguments
    except FileNotFoundError:
        raise AggregatorUnreachable("kubectl is not installed; install it, or use a copy with --ledger FILE") from None


def _access() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-n", "--namespace", default="gputally")
    parser.add_argument("--deployment", default="gputally-aggregator")
    parser.add_argument("--context", default="")
    parser.add_argument("--kubeconfig", default="")
    return parser
