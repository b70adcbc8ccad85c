"""What is made of files follows them, and keeps what was there when they become wrong."""

import logging
import os
from pathlib import Path

import pytest

from gputally.errors import ConfigError, Problem
from gputally.files.credentials import Files, Reread, token


class Sum:
    """Makes the sum of the numbers in two files, of which the first names the second."""

    def __init__(self, first: Path) -> None:
        self.first = first
        self.made = 0

    def __call__(self, files: Files) -> int:
        self.made += 1
        try:
            number, other = files.of(self.first).read_text().split()
            return int(number) + int(files.of(Path(other)).read_text())
        except (OSError, ValueError) as error:
            raise ConfigError([Problem("", "", str(error))]) from None


@pytest.fixture
def summing(tmp_path: Path) -> Sum:
    (tmp_path / "second").write_text("2")
    (tmp_path / "first").write_text(f"1 {tmp_path / 'second'}")
    return Sum(tmp_path / "first")


def test_nothing_is_made_anew_while_no_file_changes(summing: Sum) -> None:
    made = Reread(summing)

    assert [made(), made(), summing.made] == [3, 3, 1]


def test_a_change_of_any_file_counts(summing: Sum, tmp_path: Path) -> None:
    made = Reread(summing)
    (tmp_path / "second").write_text("20")
    assert made() == 21
    (tmp_path / "third").write_text("300")
    summing.first.write_text(f"1 {tmp_path / 'third'}")
    assert made() == 301
    (tmp_path / "second").write_text("no number")
    assert (made(), summing.made) == (301, 3)


def test_a_file_that_is_replaced_by_one_of_the_same_size_and_time_counts(summing: Sum, tmp_path: Path) -> None:
    made, second = Reread(summing), tmp_path / "second"
    found = second.stat()
    (tmp_path / "new").write_text("7")
    os.utime(tmp_path / "new", ns=(found.st_atime_ns, found.st_mtime_ns))

    (tmp_path / "new").replace(second)

    assert made() == 8


def test_what_cannot_be_used_changes_nothing_and_is_told_once(
    summing: Sum, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = Reread(summing)
    (tmp_path / "second").unlink()
    assert [made(), made()] == [3, 3]
    (tmp_path / "second").write_text("30")
    assert made() == 31

    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    error = f"[Errno 2] No such file or directory: '{tmp_path}/second'"
    assert told == [f"changed files are not used, the previous contents stay in use: {error}"]


def test_at_the_start_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        Reread(Sum(tmp_path / "missing"))


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"two\nlines", b"\xc3\xa9", b"nul\0"])
def test_what_is_no_token_is_told_without_repeating_it(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)

    with pytest.raises(ConfigError) as told:
        token(file, Files(), role="--some.flag")

    assert str(told.value) == (
        f"{file}: --some.flag: cannot be used: is not one line of ASCII without spaces; "
        "use a token such as from openssl rand -hex 32"
    )
