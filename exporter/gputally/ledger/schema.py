"""Opening a ledger file: what it is, whether it is sound, and bringing it to the present schema."""

import sqlite3
from importlib.resources import files
from pathlib import Path

from gputally.errors import LedgerError

APPLICATION_ID = 0x67707574  # "gput": tells our files from other SQLite databases
_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_BUSY_S = 10


def migrations() -> list[tuple[int, str]]:
    """(version, SQL) of every schema step, in order."""
    folder = files("gputally.ledger") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text()) for name in names]


def connect(path: Path) -> sqlite3.Connection:
    """Open the ledger at `path`, created if there is none, at the present schema.

    Raises: LedgerError for a file that is no ledger, is corrupt, or was written by a newer version; such a
    file is not touched.
    """
    if path.exists() and path.stat().st_size:
        _examine(path)
    try:
        connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        _migrate(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing
    except sqlite3.Error as error:
        raise LedgerError(f"{path}: cannot be opened: {error}; check the folder, its rights and its space") from None
    return connection


def _examine(path: Path) -> None:
    """Refuse what is not ours to write, from the header and a read-only check."""
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}; it must be readable and writable") from None
    if not header.startswith(_MAGIC):
        raise LedgerError(f"{path}: is no SQLite file; it was left untouched, choose another path")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise LedgerError(f"{path}: is a database of another program; it was left untouched, choose another path")
    version, newest = int.from_bytes(header[60:64], "big"), migrations()[-1][0]
    if version > newest:
        raise LedgerError(
            f"{path}: has schema {version}, this gputally knows up to {newest}; it was left untouched, "
            "run the newer gputally again or restore the backup made before the upgrade"
        )
    _check(path)


def _check(path: Path) -> None:
    try:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=_BUSY_S)
        try:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        finally:
            connection.close()
    except sqlite3.Error as error:
        verdict = str(error)
    if verdict != "ok":
        raise LedgerError(
            f"{path}: is corrupt ({verdict}); it was left untouched, restore a backup or move it away to begin anew"
        )


def _migrate(connection: sqlite3.Connection) -> None:
    """Apply the missing steps, each in one transaction, before WAL mode: the header on disk then tells the truth."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    missing = [(number, script) for number, script in migrations() if number > version]
    if not missing:
        return
    connection.execute("PRAGMA journal_mode = DELETE")
    for number, script in missing:
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number};"
        connection.executescript(f"BEGIN IMMEDIATE; {script}; {marks} COMMIT;")
