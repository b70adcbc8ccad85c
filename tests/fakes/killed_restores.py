"""Restores that are killed at every point at which they change a file: `python -m ... LEDGER BACKUP FOLDER`.

Each killed restore leaves its own folder, numbered; the last one runs to its end. Writes how many there are.
"""

import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path

from gputally.ledger.sqlite.restore import restore

CHANGES = ("open", "os.ftruncate", "os.link", "os.remove", "os.rename", "sqlite3.connect")


def main() -> None:
    ledger, backup, folder = map(Path, sys.argv[1:])
    for number in count():
        place = folder / str(number)
        place.mkdir()
        for suffix in ("", "-wal", "-shm", ".begun"):
            if Path(f"{ledger}{suffix}").exists():
                shutil.copyfile(f"{ledger}{suffix}", place / f"l.db{suffix}")
        if not killed(place / "l.db", backup, at=number):
            sys.stdout.write(str(number))
            return


def killed(ledger: Path, backup: Path, *, at: int) -> bool:
    """Run a restore in a child that is killed before the change number `at`."""
    child = os.fork()
    if not child:
        kill_at(at, ledger.parent)
        restore(backup, ledger, force=False, report=lambda _: None)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def kill_at(at: int, folder: Path) -> None:
    """Kill this process before the change number `at` in the folder."""
    numbers = count()

    def heard(event: str, arguments: tuple[object, ...]) -> None:
        if event in CHANGES and any(str(folder) in str(each) for each in arguments) and next(numbers) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)


if __name__ == "__main__":
    main()
