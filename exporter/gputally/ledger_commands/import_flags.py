"""The flags of `gputally import`."""

import argparse
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gputally.ledger_commands.ledger_flags import add_command

if TYPE_CHECKING:
    from gputally.setting import Parser

_EXAMPLES: Final = """\
The ledger of the import is a file of its own; 'gputally report --history' reads it together with the live one, up to
the live one's accounting start. Importing a file again changes nothing; rows that have changed since are revised.

CSV has a header. Columns: id, submit, start, end, status, and gpu_milli (thousandths of a GPU) or gpu_count; optional:
tenant, qos (read by tier rules as a PriorityClass), queue, gpu_type, node. A time is 2026-10-01T12:00:00 or a number of
seconds since --zero. An empty start is a job that never started, an empty end one that runs.

Slurm:
  sacct --allusers --allocations --parsable2 --starttime 2026-01-01 \\
    --format JobIDRaw,Account,QOS,Partition,State,Submit,Start,End,AllocTRES,NodeList > jobs.txt

exit status: 0 all rows imported, 9 some rows rejected; each is named with its line, column and reason

examples:
  gputally import jobs.csv --ledger history.db --prices.file prices.yaml
  gputally import jobs.txt --format sacct --time-zone Europe/Berlin --ledger history.db
  gputally import trace.csv.gz --zero 2026-01-01 --ledger history.db --rejected rejected.csv
  gputally report --ledger gputally.db --history history.db --window 2026 --by month,tenant
"""


def add_import_command(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add `import`."""
    command = add_command(commands, "import", "import jobs of the time before the installation", _EXAMPLES)
    command.set_defaults(run=_import)
    _add_flags(command)


def _add_flags(command: ArgumentParser) -> None:
    add = command.add_argument
    add("file", metavar="FILE", type=Path, help="the file to import; .gz is decompressed")
    add("--ledger", metavar="FILE", required=True, help="the ledger of imported jobs, created if missing")
    add("--format", choices=("csv", "sacct"), default="csv", help="see below [default: csv]")
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


def _import(parsed: Namespace) -> int:
    from gputally.ledger_commands.import_command import ImportOptions, import_file  # noqa: PLC0415 - imports SQLite

    names = ("file", "ledger", "format", "config", "prices", "zero", "time_zone", "until", "source", "rejected")
    return import_file(ImportOptions(**{name: getattr(parsed, name) for name in names}))
