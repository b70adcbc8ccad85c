"""`gputally backup` and `gputally restore`."""

import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from gputally.errors import LedgerError
from gputally.ledger.open import path_of
from gputally.ledger.sqlite.backup import sync
from gputally.ledger.sqlite.maintenance.ledger_copy import Copied, copied
from gputally.ledger.sqlite.maintenance.restoring import put_in_place, staged
from gputally.maintenance.progress_line import ProgressLine
from gputally.model.units import US_PER_SECOND

_STREAM: Final = "-"
_MIB: Final = 1 << 20
_CHUNK: Final = 1 << 20


def back_up(parsed: Namespace) -> int:
    """Write a backup to a file or to standard output. Raises: LedgerError."""
    ledger, verified = path_of(parsed.ledger), not parsed.no_verify
    if parsed.target == _STREAM:
        if sys.stdout.isatty():
            raise LedgerError("the backup is binary; redirect standard output to a file")
        with _copy(ledger, ledger.parent, verified=verified) as copy:
            with copy.path.open("rb") as source:
                _pump(source, sys.stdout.buffer)
            _report(copy, "standard output")
        return 0
    target = Path(parsed.target)
    if target.exists() and not parsed.force:
        raise LedgerError(f"{target}: exists; use another name, or --force to overwrite it")
    with _copy(ledger, target.parent, verified=verified) as copy:
        copy.path.replace(target)
        sync(target.parent)
        _report(copy._replace(path=target), str(target))
    return 0


def restore(parsed: Namespace) -> int:
    """Replace the ledger with a backup. Raises: LedgerError."""
    ledger, moment = path_of(parsed.ledger), datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    with staged(ledger) as stage:
        _fetch(parsed.source, stage)
        restored = put_in_place(stage, ledger, at=moment, allow_other_cluster=parsed.force)
    kept = f"; the previous ledger is {restored.previous}" if restored.previous else ""
    _say(f"{ledger}: restored from {'standard input' if parsed.source == _STREAM else parsed.source}{kept}")
    if restored.is_older:
        _say("its schema is older; the aggregator upgrades it when it starts")
    return 0


@contextmanager
def _copy(ledger: Path, folder: Path, *, verified: bool) -> Iterator[Copied]:
    with ProgressLine() as progress:

        def show(done: int, total: int) -> None:
            progress.show(f"{done / _MIB:,.0f} of {total / _MIB:,.0f} MiB copied")

        with copied(ledger, folder, show, verified=verified) as copy:
            yield copy


def _report(copy: Copied, name: str) -> None:
    until = "an unknown time" if copy.accounted_us is None else _utc(copy.accounted_us)
    _say(f"{name}: {copy.path.stat().st_size / _MIB:,.1f} MiB, accounted until {until}")


def _utc(us: int) -> str:
    return datetime.fromtimestamp(us // US_PER_SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _fetch(source: str, stage: Path) -> None:
    """Copy the backup beside the ledger. Raises: LedgerError."""
    try:
        with stage.open("xb") as target:
            if source == _STREAM:
                _pump(sys.stdin.buffer, target)
            else:
                with Path(source).open("rb") as file:
                    _pump(file, target)
    except OSError as error:
        raise LedgerError(f"{error.filename or source}: {error.strerror}; the ledger is unchanged") from None


def _pump(source: BinaryIO, target: BinaryIO) -> None:
    shutil.copyfileobj(source, target, _CHUNK)
    target.flush()


def _say(text: str) -> None:
    """Standard output may be the backup itself."""
    sys.stderr.write(f"{text}\n")
