"""`gputally import` imports jobs of the time before the installation, from a file or a Prometheus."""

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from gputally.errors import ConfigError, Problem
from gputally.model.units import GPU
from gputally.process.settings import add_epilog

_EXAMPLES: Final = """\
The ledger of the import is a file of its own; 'gputally report --history' reads it together with the live one, up to
the live one's accounting start. Importing a file again changes nothing; rows that have changed since are revised.

CSV has a header. Columns: id, submit, start, end, status, and gpu_milli (thousandths of a GPU) or gpu_count; optional:
tenant, qos (read by tier rules as a PriorityClass), queue, gpu_type, node. A time is 2026-10-01T12:00:00 or a number of
seconds since --zero. An empty start is a job that never started, an empty end one that runs.

Slurm, with times in UTC, all runs of requeued jobs, and no text that users choose, such as JobName:
  TZ=UTC sacct --allusers --allocations --duplicates --parsable2 --starttime 2026-01-01 \\
    --format JobIDRaw,Account,QOS,Partition,State,Submit,Start,End,AllocTRES,NodeList > jobs.txt

Prometheus with kube-state-metrics: the GPU pods of --window, up to the last scrape. A time of the Kubernetes API is
exact; an end that only scrapes show is charged up to the last scrape with the pod, and the result states the largest
error. docs/import.md lists the series.

exit status: 0 all rows imported, 9 some rows rejected, or with an ambiguous local time (end of daylight saving time),
or more allocated than a node has; each is named with the reason, 11 the Prometheus does not answer, or lacks a series

examples:
  gputally import jobs.csv --ledger history.db --prices.file prices.yaml
  gputally import jobs.txt --format sacct --ledger history.db
  gputally import trace.csv.gz --zero 2026-01-01 --ledger history.db --rejected rejected.csv
  gputally import http://localhost:9090 --format prometheus --window 30d --ledger history.db --prices.file prices.yaml
  gputally report --ledger gputally.db --history history.db --window 2026 --by month,tenant
"""
_COMMON: Final = ("ledger", "config", "prices", "time_zone", "rejected")
_PROMETHEUS: Final = ("window", "matchers", "user", "password_file", "token_file", "ca_file")
_SLURM: Final = ("shards_per_gpu", "mps_per_gpu", "trust_names")
_UNUSED: Final = {
    "csv": (*_PROMETHEUS, *_SLURM),
    "sacct": (*_PROMETHEUS, "delimiter"),
    "prometheus": ("zero", "until", "delimiter", *_SLURM),
}
"""Flags that a format does not have."""


def add_import_flags(command: ArgumentParser) -> None:
    """Add all flags, with examples."""
    command.set_defaults(run=_import)
    add_epilog(command, _EXAMPLES)
    _add_flags(command)


def _add_flags(command: ArgumentParser) -> None:
    add = command.add_argument
    add("file", metavar="FILE|URL", help="the file to import (.gz is decompressed), or the URL of a Prometheus")
    add("--ledger", metavar="FILE", required=True, help="the ledger of imported jobs, created if missing")
    add("--format", choices=("csv", "sacct", "prometheus"), default="csv", help="see below [default: csv]")
    add("--config.file", dest="config", metavar="FILE", type=Path, help="tier rules (YAML), as for the aggregator")
    add(
        "--prices.file",
        dest="prices",
        metavar="FILE",
        type=Path,
        help="price book (YAML); without it, no cost",
    )
    add("--zero", metavar="TIME", help="when second 0 of a file is, if its times are numbers of seconds")
    add("--time-zone", metavar="ZONE", default="UTC", help="of times without an offset [default: UTC]")
    add("--until", metavar="TIME", help="up to when running jobs have run [default: the last time in the file]")
    add("--source", metavar="NAME", default="import", help="prefix of job IDs, if IDs of several files are alike")
    add("--rejected", metavar="FILE", type=Path, help="write all rejected rows to this file (CSV)")
    add(
        "--delimiter",
        metavar="CHARACTER",
        type=_delimiter,
        help="what separates the columns of a CSV file [default: ,]",
    )
    of_slurm = command.add_argument_group("Slurm").add_argument
    of_slurm("--shards-per-gpu", metavar="NUMBER", type=_parts, help="how many gres/shard a GPU has")
    of_slurm("--mps-per-gpu", metavar="NUMBER", type=_parts, help="how many gres/mps a GPU has, often 100")
    text = "read texts that users choose, such as JobName, which can look like rows of others"
    of_slurm("--trust-names", action="store_const", const=True, help=text)
    of_prometheus = command.add_argument_group("Prometheus").add_argument
    of_prometheus(
        "--window", metavar="PERIOD", help="what to import: 30d, 2026-10, 2026-10-01/2026-10-15 [default: 30d]"
    )
    of_prometheus("--matchers", metavar="MATCHERS", help="select one of several clusters, such as 'cluster=\"prod\"'")
    of_prometheus("--user", metavar="NAME", help="user name")
    of_prometheus("--password-file", type=Path, metavar="FILE", help="file with the password of --user")
    of_prometheus("--token-file", type=Path, metavar="FILE", help="file with a bearer token")
    of_prometheus("--ca-file", type=Path, metavar="FILE", help="CA certificate (PEM) of an https address")


def _delimiter(text: str) -> str:
    """Raises: argparse.ArgumentTypeError."""
    text = "\t" if text == "\\t" else text
    if len(text) == 1 and not text.isalnum() and text not in '"\r\n ':
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not one character that separates columns, such as ';' or '\\t'")


def _parts(text: str) -> int:
    """Raises: argparse.ArgumentTypeError."""
    if text.isascii() and text.isdigit() and 1 <= int(text) <= GPU:
        return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 to {GPU}")


def _import(parsed: Namespace) -> int:
    _expect_unused(parsed, _UNUSED[parsed.format])
    if parsed.format == "prometheus":
        from gputally.commands.from_history.prometheus_pods import PrometheusImport, import_prometheus  # noqa: PLC0415 - aiohttp

        flags = {name: getattr(parsed, name) for name in (*_COMMON, *_PROMETHEUS)}
        return import_prometheus(PrometheusImport(**flags, url=parsed.file))
    if "://" in parsed.file:
        text = f"'{parsed.file}' is a URL; add --format prometheus, or name a file"
        raise ConfigError([Problem("", "FILE", text)])
    from gputally.commands.from_history.file_jobs import ImportOptions, import_file  # noqa: PLC0415 - for --help the flags suffice

    names = (*_COMMON, *_SLURM, "format", "zero", "until", "source", "delimiter")
    return import_file(ImportOptions(file=Path(parsed.file), **{name: getattr(parsed, name) for name in names}))


def _expect_unused(parsed: Namespace, names: Iterable[str]) -> None:
    """Raises: ConfigError for flags that this format does not have."""
    used = [f"--{name.replace('_', '-')}" for name in names if getattr(parsed, name) is not None]
    if used:
        raise ConfigError([Problem("", flag, f"does not apply to --format {parsed.format}; omit it") for flag in used])
