"""Runs `gputally posture`: read, compute, write."""

import asyncio
import sys
from pathlib import Path

from msgspec import Struct

from gputally.config.rules_file import default_rules, read_rules
from gputally.errors import ConfigError, Problem
from gputally.kube.connection.connect import Choice, connect
from gputally.model.rules import Rules
from gputally.posture.posture_document import posture_of
from gputally.posture.posture_input import PostureInput
from gputally.posture_command.cluster_reader import read_cluster
from gputally.posture_command.manifest_reader import read_manifests
from gputally.posture_command.posture_output import write_posture


class PostureOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command; without `files`, the cluster is read."""

    files: tuple[Path, ...]
    kubeconfig: str
    context: str
    configuration: Path | None
    output: str
    exit_zero: bool


def posture(options: PostureOptions) -> int:
    """Write the posture. Returns the exit status: 1 for errors and warnings. Raises: ConfigError, ApiError."""
    if options.files and (options.kubeconfig or options.context):
        flag = "--kubeconfig" if options.kubeconfig else "--context"
        raise ConfigError([Problem("", flag, "cannot be combined with files; omit one of them")])
    rules = read_rules(options.configuration) if options.configuration else default_rules()
    read = read_manifests(options.files) if options.files else asyncio.run(_read_cluster(options, rules))
    found = posture_of(read, rules)
    write_posture(sys.stdout, found, output=options.output)
    sys.stdout.flush()
    return int(found.fails and not options.exit_zero)


async def _read_cluster(options: PostureOptions, rules: Rules) -> PostureInput:
    async with connect(Choice(kubeconfig=options.kubeconfig, context=options.context)) as api:
        return await read_cluster(api, rules)
