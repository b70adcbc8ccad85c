"""`gputally import --format prometheus`: pods of the time before the installation, from kube-state-metrics."""

import asyncio
import ssl
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from aiohttp import BasicAuth, ClientSession
from msgspec import Struct

from gputally.accounting.prices.book import PriceBook
from gputally.accounting.prices.pricing import Pricing
from gputally.commands.from_history.result import NOT_ALL_STATUS, ImportOutput, finish_import
from gputally.commands.from_ledger.reading import time_zone
from gputally.commands.progress import ProgressLine, ending_cleanly
from gputally.config.read import read_files
from gputally.errors import ConfigError, Problem
from gputally.files.credentials import Files, token, trust_authority
from gputally.importing.import_jobs import BATCH, Counts, Plan, import_rows
from gputally.importing.kube_state.history_reader import HistoryReader, PodRow
from gputally.importing.kube_state.history_scan import HistoryScan, scan_history
from gputally.importing.kube_state.node_lives import NodeAllocations
from gputally.importing.kube_state.pod_classifier import PodClassifier
from gputally.importing.kube_state.pod_samples import RejectedSeries
from gputally.importing.kube_state.prometheus_api import PrometheusAccess, PrometheusApi, TimeSpan, us_of
from gputally.ledger.open import reading_once
from gputally.ledger.open_to_write import open_import_ledger
from gputally.ledger.records import Window
from gputally.model.pod_record import PodRecord
from gputally.model.printable import printable
from gputally.model.rules import Rules
from gputally.model.units import US_PER_SECOND, to_datetime
from gputally.output.report import write_sampled
from gputally.reports.query import ReportQuery
from gputally.reports.unbilled import read_sampled
from gputally.reports.windows import parse_window

_WINDOW: Final = "30d"
_LONGEST_S: Final = 800 * 86_400


class PrometheusImport(Struct, frozen=True, kw_only=True):
    """The flags of the command."""

    url: str
    ledger: str
    config: Path | None
    prices: Path | None
    time_zone: str
    rejected: Path | None
    window: str | None
    matchers: str | None
    user: str | None
    password_file: Path | None
    token_file: Path | None
    ca_file: Path | None


def import_prometheus(options: PrometheusImport) -> int:
    """Import the pods. Raises: LedgerError, PrometheusError, and ConfigError for wrong files or flags."""
    access, window = _access(options), _window(options)
    rules, book = read_files(options.config, options.prices, with_budgets=False)
    with ending_cleanly(), ProgressLine() as progress:
        result = asyncio.run(_import(_Task(options.ledger, rules, book, window), access, progress))
    output = ImportOutput(options.url, "pods", options.rejected, RejectedSeries._fields)
    missing = "" if result.scan else "no pod with GPUs in this period; docs/import.md lists the series that are read"
    status = finish_import(output, result.counts, missing)
    if result.scan and result.counts.imported:
        _say_how_exact(options.ledger, result.scan)
    for each in (*result.notes, *sorted(f"the answer may be incomplete: {text}" for text in result.warnings)):
        sys.stderr.write(f"{options.url}: {printable(each)}\n")
    return NOT_ALL_STATUS if result.has_excess else status


class _Task(NamedTuple):
    """What to import, by which rules and prices, into which ledger."""

    ledger: str
    rules: Rules
    book: PriceBook | None
    window: TimeSpan


class _Result(NamedTuple):
    """What was imported, and whether that is more than nodes have; without a scan, there were no pods."""

    scan: HistoryScan | None
    counts: Counts
    notes: Sequence[str]
    warnings: Collection[str]
    has_excess: bool = False


async def _import(task: _Task, access: PrometheusAccess, progress: ProgressLine) -> _Result:
    async with ClientSession() as session:
        api, counts = PrometheusApi(session, access), Counts()
        scan = await scan_history(api, task.window, task.rules, progress)
        if scan is None:
            return _Result(None, counts, (), api.warnings)
        reader = HistoryReader(api, task.rules, task.book.label_keys() if task.book else frozenset())
        with open_import_ledger(task.ledger) as ledger:
            plan = _plan(task, scan, ledger.complete_us())
            rows: list[PodRow] = [*scan.rejected]
            allocated = NodeAllocations(scan.nodes, _window_of(scan).end_us)
            async for batch in reader.pods(scan, progress):
                rows += batch
                for record in batch:
                    if isinstance(record, PodRecord):
                        allocated.add(record)
                if len(rows) >= BATCH:
                    import_rows(ledger, rows, plan, counts)
                    rows = []
            import_rows(ledger, rows, plan, counts)
            for pods in ledger.add_up():
                progress(f"adding up, {pods:,} pods ...")
        notes = [*reader.notes(), *scan.nodes.notes(), *allocated.notes()]
        return _Result(scan, counts, notes, api.warnings, bool(allocated.excesses()))


def _window_of(scan: HistoryScan) -> Window:
    return Window(us_of(scan.window.start_s), us_of(scan.window.end_s))


def _plan(task: _Task, scan: HistoryScan, complete_us: int) -> Plan[PodRecord]:
    window = _window_of(scan)
    return Plan(
        classifier=PodClassifier(Pricing(task.book, now_us=window.end_us)),
        window=window,
        terms=f"{task.rules.digest} {task.book.digest if task.book else ''}",
        complete_us=complete_us,
    )


def _access(options: PrometheusImport) -> PrometheusAccess:
    """Raises: ConfigError for flags or files of credentials that cannot be used."""
    if not options.url.startswith(("http://", "https://")):
        raise ConfigError([Problem("", "URL", f"'{options.url}' is not a URL; use one such as http://localhost:9090")])
    if bool(options.user) != bool(options.password_file):
        raise ConfigError([Problem("", "--user", "requires --password-file, and the other way round")])
    files = Files()
    tls: ssl.SSLContext | bool = True
    if options.ca_file:
        tls = ssl.create_default_context()
        trust_authority(tls, options.ca_file, files, role="--ca-file")
    bearer = token(options.token_file, files, role="--token-file") if options.token_file else ""
    basic = None
    if options.user and options.password_file:
        basic = BasicAuth(options.user, token(options.password_file, files, role="--password-file"), "utf-8")
    return PrometheusAccess(
        url=options.url.rstrip("/"),
        authorization=f"Bearer {bearer}" if bearer else "",
        basic=basic,
        tls=tls,
        matchers=options.matchers or "",
    )


def _window(options: PrometheusImport) -> TimeSpan:
    """Raises: ConfigError."""
    text, now_us = options.window or _WINDOW, time.time_ns() // 1000
    try:
        found = parse_window(text, now_us=now_us, zone=time_zone(options.time_zone))
    except ValueError as error:
        raise ConfigError([Problem("", "--window", str(error))]) from None
    window = TimeSpan(found.start_us / US_PER_SECOND, min(found.end_us, now_us) / US_PER_SECOND)
    if not 0 < window.end_s - window.start_s <= _LONGEST_S:
        problem = f"'{text}' is not a period of up to 800 days in the past; use one such as 30d or 2026-10"
        raise ConfigError([Problem("", "--window", problem)])
    return window


def _say_how_exact(ledger: str, scan: HistoryScan) -> None:
    window = _window_of(scan)
    start, end = (f"{to_datetime(at_us):%Y-%m-%d %H:%M:%S}" for at_us in window)
    sys.stdout.write(f"accounted from {start} to {end} UTC; scraped every {scan.scrapes.interval_s:.3g} s\n")
    with reading_once(ledger) as reader:
        write_sampled(sys.stdout, read_sampled(reader, ReportQuery(window=window, by=("tenant",))), source="samples")
