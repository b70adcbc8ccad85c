"""Replaces a ledger by its backup."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from gputally.errors import LedgerError
from gputally.ledger.records import IMPORTED
from gputally.ledger.sqlite.backup import CHUNK, partial_of, snapshot
from gputally.ledger.sqlite.copies import sync
from gputally.ledger.sqlite.file import Lock, expect_ours, is_locked, reading, uri
from gputally.ledger.sqlite.info import accounted_us, cluster_of
from gputally.ledger.sqlite.integrity import damage_of, examine, mark, marker_of, unmark
from gputally.ledger.sqlite.schema import newest_schema, version_of
from gputally.ledger.stored import Report, Restored

_BESIDE: Final = ("-wal", "-shm")


class _Found(NamedTuple):
    schema: int
    cluster: str | None
    accounted_us: int | None

    @property
    def has_accounting(self) -> bool:
        """Whether its loss must be noticed; jobs can be imported again."""
        return self.accounted_us is not None and self.cluster != IMPORTED


def restore(source: Path | BinaryIO, path: Path, *, force: bool, report: Report) -> Restored:
    """Replace the ledger at `path` by the backup `source`, once that is complete and checked.

    The previous ledger is kept beside it. `path` names one of the two, complete, whenever this process is killed; a
    lost ledger stays noticed as lost until then, as the marker is written before its WAL gets another name.
    `force` replaces the ledger of another cluster, or a file that is not a ledger.

    Raises: LedgerError if another process writes the ledger, or the backup is damaged, is none or is of a newer schema;
    then the ledger is as before.
    """
    if isinstance(source, Path) and path.exists() and source.exists() and source.samefile(path):
        raise LedgerError(f"{source}: is the ledger itself; specify its backup")
    name = str(source) if isinstance(source, Path) else "standard input"
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    with _locked(path), partial_of(Path(f"{path}.restore"), mode) as partial:
        _fill(partial, source, name, report)
        found = _checked(partial, name, report)
        _expect_replaceable(path, found, name, force=force)
        if found.has_accounting and not mark(path):
            raise LedgerError(f"{marker_of(path)}: cannot be written; nothing was restored")
        kept = _keep(path)
        if not found.has_accounting:
            unmark(path)
        partial.replace(path)
        sync(path.parent)
    return Restored(found.schema, found.accounted_us, kept)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    if is_locked(path):
        raise LedgerError(
            f"{path}: another process writes this ledger; stop it first, on a cluster with "
            "'kubectl scale -n gputally deploy/gputally-aggregator --replicas 0'"
        )
    lock = Lock(path)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _fill(partial: Path, source: Path | BinaryIO, name: str, report: Report) -> None:
    if isinstance(source, Path):
        if not source.is_file():
            raise LedgerError(f"{source}: no such file; specify a file that 'gputally backup' wrote")
        snapshot(source, partial, purpose="a restore", report=report)
        return
    report("receiving")
    try:
        with partial.open("wb") as file:
            shutil.copyfileobj(source, file, CHUNK)
        sync(partial)
    except OSError as error:
        raise LedgerError(f"{name}: cannot be copied to {partial.parent}: {error.strerror}; free some space") from None


def _checked(partial: Path, name: str, report: Report) -> _Found:
    """The contents of the copied backup. Raises: LedgerError, with `name` as the file."""
    try:
        with reading(partial) as copy, damage_of(partial):
            _expect_readable(version_of(copy), partial)
            examine(copy, partial, report)
            return _Found(version_of(copy), cluster_of(copy), accounted_us(copy))
    except LedgerError as error:
        text = str(error).replace(str(partial), name)
        raise type(error)(f"{text}; nothing was restored") from None


def _expect_readable(schema: int, partial: Path) -> None:
    newest = newest_schema()
    if schema > newest:
        raise LedgerError(f"{partial}: has schema {schema}, this gputally reads up to {newest}; use the newer gputally")


def _expect_replaceable(path: Path, found: _Found, name: str, *, force: bool) -> None:
    """Raises: LedgerError if the file at `path` is not the ledger of the same cluster."""
    if force or not path.exists() or not path.stat().st_size:
        return
    expect_ours(path)
    cluster = _cluster(path)
    if cluster and found.cluster and cluster != found.cluster:
        raise LedgerError(
            f"{name}: is a backup of the cluster {found.cluster}, but {path} belongs to {cluster}; nothing was "
            "restored, choose the right backup or replace the ledger with --force"
        )


def _cluster(path: Path) -> str | None:
    """The cluster of the ledger at `path`, None if it is too damaged to tell."""
    try:
        with reading(path) as connection:
            return cluster_of(connection)
    except LedgerError:
        return None


def _keep(path: Path) -> Path | None:
    """Give the previous ledger another name beside its own, under which it stays. Raises: LedgerError."""
    kept = Path(f"{path}.before-restore-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    _fold_wal(path)
    found = [suffix for suffix in ("", *_BESIDE) if Path(f"{path}{suffix}").exists()]
    try:
        for suffix in found:
            Path(f"{kept}{suffix}").hardlink_to(f"{path}{suffix}")
        sync(path.parent)
    except OSError as error:
        raise LedgerError(f"{kept}: cannot keep the previous ledger: {error.strerror}; nothing was restored") from None
    for suffix in _BESIDE:  # SQLite would apply them to the backup
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    return kept if "" in found else None


def _fold_wal(path: Path) -> None:
    """Move the WAL into the file, which is then complete without it, so that one rename replaces it.

    A damaged ledger stays as it is: then its WAL is kept with it.
    """
    if not path.exists() or not path.stat().st_size:
        return
    try:
        expect_ours(path)
        with closing(sqlite3.connect(uri(path, "mode=rw"), uri=True, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except (LedgerError, sqlite3.Error):
        return
