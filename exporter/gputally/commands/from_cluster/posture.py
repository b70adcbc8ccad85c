"""Reads a cluster or manifests, and a ledger if one is named, and writes the posture."""

import asyncio
import sys
from collections import Counter
from datetime import UTC
from pathlib import Path

from msgspec import Struct

from gputally.commands.from_cluster.posture_sources import read_cluster, read_manifests
from gputally.config.rules_file import default_rules, read_rules
from gputally.errors import ConfigError, Problem
from gputally.kube.connection import Choice, connect
from gputally.model.rules import Rules
from gputally.output.posture import posture_answer
from gputally.output.writer import write_answer
from gputally.posture.document import posture_of
from gputally.posture.objects import PostureInput
from gputally.posture.preemptions import PreemptionHistory


class PostureOptions(Struct, frozen=True, kw_only=True):
    """The flags of the command; without `files`, the cluster is read, without `ledger`, nothing was observed."""

    files: tuple[Path, ...]
    kubeconfig: str
    context: str
    configuration: Path | None
    ledger: str
    window: str
    output: str
    exit_zero: bool


def posture(options: PostureOptions) -> int:
    """Write the posture. Returns the exit status: 1 for errors and warnings. Raises: GputallyError."""
    if options.files and (options.kubeconfig or options.context):
        flag = "--kubeconfig" if options.kubeconfig else "--context"
        raise ConfigError([Problem("", flag, "cannot be combined with files; omit one of them")])
    rules = read_rules(options.configuration) if options.configuration else default_rules()
    read = read_manifests(options.files) if options.files else asyncio.run(_read_cluster(options, rules))
    found = posture_of(read, rules, _history(options))
    write_answer(sys.stdout, posture_answer(found), output=options.output)
    sys.stdout.flush()
    return int(found.fails and not options.exit_zero)


def _history(options: PostureOptions) -> PreemptionHistory | None:
    """What the ledger has, if one is named. Raises: LedgerError, and ConfigError for a wrong window."""
    if not options.ledger:
        return None
    return _read_history(options.ledger, options.window)


def _read_history(ledger: str, window: str) -> PreemptionHistory:
    """The accounted part of the window. Raises: LedgerError, and ConfigError for a wrong or empty window."""
    from gputally.commands.from_ledger.reading import accounted  # noqa: PLC0415 - SQLite, only where a ledger is named
    from gputally.ledger.open import reading_once  # noqa: PLC0415 - as above
    from gputally.questions.times import period_of  # noqa: PLC0415 - as above

    with reading_once(ledger) as reader:
        state = reader.state()
        period = accounted(period_of(window, "window", now_us=state.accounted_us, zone=UTC), state)
        if period.start_us >= period.end_us:
            problem = f"nothing is accounted in '{window}'; choose a period after the start of the ledger"
            raise ConfigError([Problem("", "--window", problem)])
        found = ((each.victim_tier, each.by) for each in reader.preemptions(period))
        counts = Counter((tier, by.preemptor_tier) for tier, by in found if by and not by.is_for_workload)
        return PreemptionHistory(window=period, counts=counts, classes=reader.priority_classes(period))


async def _read_cluster(options: PostureOptions, rules: Rules) -> PostureInput:
    async with connect(Choice(kubeconfig=options.kubeconfig, context=options.context)) as api:
        return await read_cluster(api, rules)
