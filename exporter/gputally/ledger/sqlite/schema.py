"""Opens ledger files: identifies and checks them, and upgrades them to the current schema."""

import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

from gputally.errors import LedgerError
from gputally.ledger.sqlite import integrity
from gputally.ledger.sqlite.backup import back_up, usable_backups
from gputally.ledger.sqlite.marker import expect_not_lost, expect_unmarked, remedy
from gputally.ledger.sqlite.retention.free_pages import SHRINKABLE
from gputally.ledger.sqlite.sqlite_errors import converted_errors

APPLICATION_ID = 0x67707574  # "gput": identifies our files among SQLite databases
_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_CACHE_KIB = 512
"""Half a MiB instead of two: whole pages are cached by the operating system anyway."""
_ACCOUNTING_START = "SELECT value FROM meta WHERE key IN ('accounting_start_us', 'opened_us')"
"""In any schema: the second key is that of schemas before 7."""
BUSY_S = 5
"""How long to wait for another process that holds SQLite's own locks."""


def newest_schema() -> int:
    """The schema that this version reads and writes."""
    return migrations()[-1][0]


def migrations() -> list[tuple[int, str]]:
    """(version, SQL) of every schema step, in order."""
    folder = files("gputally.ledger.sqlite") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(int(name.split("_")[0]), (folder / name).read_text()) for name in names]


def connect(path: Path) -> sqlite3.Connection:
    """Open the ledger at `path` with the current schema; creates it if needed.

    Raises: LedgerError for a file that is not a ledger, is corrupt, was lost, cannot be written, or was written by a
    newer version; such a file is not changed.
    """
    if path.is_dir():
        raise LedgerError(f"{path}: is a directory; specify a file in it")
    expect_not_lost(path)
    if path.exists() and path.stat().st_size:
        _examine(path)
    try:
        return _opened(path)
    except sqlite3.Error as error:
        raise LedgerError(
            f"{path}: cannot be opened: {error}; check its permissions, the free space and what else has it open"
        ) from None


def connect_reading(path: Path) -> sqlite3.Connection:
    """Open the ledger at `path` for reading during writes; any thread may use the connection, one at a time.

    Raises: LedgerError for a file that is not a ledger with the current schema.
    """
    expect_not_lost(path)
    if not path.is_file():
        raise LedgerError(f"{path}: no such file; use the file of --ledger of the aggregator")
    expect_ours(path)
    connection = sqlite3.connect(uri(path, "mode=ro"), uri=True, timeout=BUSY_S, check_same_thread=False)
    try:
        with converted_errors(path):
            expect_current(path, version_of(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def expect_current(path: Path, version: int) -> None:
    """Raises: LedgerError if `version` is not the schema that this version reads."""
    newest = migrations()[-1][0]
    if version != newest:
        remedy = (
            "start its aggregator, which upgrades it, and copy it again if this is a copy"
            if version < newest
            else "run the newer gputally"
        )
        raise LedgerError(f"{path}: has schema {version}, but this gputally reads {newest}; {remedy}")


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        if not _is_new(connection):
            connection.executescript(
                "BEGIN; PRAGMA user_version = 0; ROLLBACK;"
            )  # fails for a read-only file, which SQLite opens silently
        _upgrade(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("PRAGMA synchronous = FULL")  # NORMAL survives a killed process, but not a power failure
    except BaseException:
        connection.close()
        raise
    return connection


def _upgrade(connection: sqlite3.Connection, path: Path) -> None:
    steps, version = migrations(), version_of(connection)
    newest = steps[-1][0]
    if 0 < version < newest:
        back_up(connection, path, upgrade=newest)
    migrate(connection, steps)


def version_of(connection: sqlite3.Connection) -> int:
    """The schema of the ledger."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def migrate(connection: sqlite3.Connection, steps: list[tuple[int, str]]) -> None:
    """Apply the missing `steps` in one transaction, so that the file matches its backup until the commit.

    A new file is not in WAL mode yet, so that its header on disk identifies it from the first commit on.
    """
    version = version_of(connection)
    missing = [(number, script) for number, script in steps if number > version]
    if missing:
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {missing[-1][0]}"
        scripts = ";\n".join(script for _, script in missing)
        begin = f"BEGIN; {SHRINKABLE}" if _is_new(connection) else "BEGIN IMMEDIATE"
        connection.executescript(f"{begin}; {scripts};\n{marks}; COMMIT;")


def _is_new(connection: sqlite3.Connection) -> bool:
    """Whether the file is empty."""
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    return pages == 0


def missing_part(connection: sqlite3.Connection) -> str | None:
    """The first table, column, index or view that the schema of the ledger has, and its file lacks; in words.

    The schema must not be newer than this version's.
    """
    version = version_of(connection)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as whole:
        migrate(whole, [step for step in migrations() if step[0] <= version])
        if not version:
            return "it has no schema"
        found, parts = _parts(connection), _parts(whole)
        for kind, name in parts:
            if (kind, name) not in found:
                return f"the {kind} {name} is missing"
        for kind, name in parts:
            columns = _columns(connection, kind, name)
            for column in _columns(whole, kind, name):
                if column not in columns:
                    return f"the column {column[0]} of the {kind} {name} is missing or has another type"
    return None


def _parts(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Kind and name of all tables, then of all views, triggers and indexes."""
    return connection.execute("SELECT type, name FROM sqlite_master ORDER BY type = 'table' DESC, rowid").fetchall()


def _columns(connection: sqlite3.Connection, kind: str, name: str) -> list[tuple[object, ...]]:
    """Name and definition of the columns of a table or view; of an index, their order; none for a trigger."""
    if kind == "index":
        return [(column, place) for place, _, column in connection.execute(f"PRAGMA index_info({name})")]
    return [column[1:] for column in connection.execute(f"PRAGMA table_info({name})")] if kind != "trigger" else []


def _examine(path: Path) -> None:
    """Reject a file that must not be written, by its header and its newest rows."""
    expect_ours(path)
    newest = migrations()[-1][0]
    try:
        with closing(_reader(path)) as connection:
            version = version_of(connection)
            if version == newest:
                integrity.read_newest(connection)
            has_accounting = bool(version) and connection.execute(_ACCOUNTING_START).fetchone() is not None
    except sqlite3.Error as error:
        raise LedgerError(f"{path}: is corrupt ({error}); it was left untouched. {remedy(path)}") from None
    if version > newest:
        raise LedgerError(
            f"{path}: has schema {version}, this gputally reads up to {newest}; it was left untouched, run the newer "
            f"gputally again{_rollback_hint(path, newest)}"
        )
    if not has_accounting:
        expect_unmarked(path)


def _rollback_hint(path: Path, newest: int) -> str:
    backups = usable_backups(path, newest=newest)
    if not backups:
        return f" (there is no backup {path.name}.before-... beside it that this version can read)"
    return (
        f", or run 'gputally restore --ledger {path} {backups[0]}', which lacks everything accounted since the upgrade"
    )


def expect_ours(path: Path) -> None:
    """Check the header before SQLite opens the file: it would replay the journal of another program's database.

    Raises: LedgerError.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}; it must be readable and writable") from None
    if not header.startswith(_MAGIC):
        raise LedgerError(f"{path}: is not an SQLite file; it was left untouched, choose another path")
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise LedgerError(f"{path}: is a database of another program; it was left untouched, choose another path")


def _reader(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, except to roll back an incomplete migration of a killed process.

    Without a WAL, the file is read as one that never changes: otherwise SQLite would create a WAL beside it.
    """
    if Path(f"{path}-journal").exists():
        mode = "mode=rw"
    else:
        mode = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    return sqlite3.connect(uri(path, mode), uri=True, timeout=BUSY_S)


def uri(path: Path, options: str) -> str:
    """The URI by which SQLite opens the file at `path`."""
    return f"{path.absolute().as_uri()}?{options}"
