"""`gputally import` of CSV files as spreadsheets and careless programs write them."""

import csv
import gzip
import io
from decimal import Decimal
from pathlib import Path

import pytest

from tests.unit.commands.sample import Result, Runner

HEADER = "id,name,tenant,submit,start,end,status,gpu_count"
START = "2026-10-01T00:00:00"


def row(
    job: int, tenant: str = "red", name: str = "plain", *, end: str = "2026-10-01T10:00:00", gpus: str = "8"
) -> str:
    return f"{job},{name},{tenant},{START},{START},{end},Succeeded,{gpus}"


class Importer:
    """Imports a file, and reads the GPU-hours that the ledger has then."""

    def __init__(self, run: Runner, folder: Path, ledger: Path) -> None:
        self._run, self.path, self._ledger = run, folder / "jobs.csv", ledger

    def __call__(self, content: str | bytes, *flags: str) -> Result:
        self.path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self._run("import", self.path, "--ledger", self._ledger, *flags)

    def hours(self) -> dict[str, Decimal]:
        out = self._run("report", "--ledger", self._ledger, "--window", "all", "--output", "csv", "--by", "tenant").out
        return {found["tenant"]: Decimal(found["gpu_hours"]) for found in csv.DictReader(out.splitlines())}


@pytest.fixture
def imported(run: Runner, tmp_path: Path, ledger: Path) -> Importer:
    return Importer(run, tmp_path, ledger)


def lines(*rows: str) -> str:
    return "".join(f"{each}\n" for each in (HEADER, *rows))


def test_the_byte_order_mark_of_a_spreadsheet_is_no_part_of_a_name(imported: Importer) -> None:
    assert imported("\ufeff" + lines(row(1)).replace("\n", "\r\n")).status == 0
    assert imported.hours() == {"red": Decimal(80)}


@pytest.mark.parametrize(("delimiter", "shown"), [(";", ";"), ("\t", "\\t"), ("|", "|")])
def test_a_file_with_another_delimiter_is_named_with_the_flag_that_reads_it(
    imported: Importer, ledger: Path, delimiter: str, shown: str
) -> None:
    content = lines(row(1)).replace(",", delimiter)

    status, _, err = imported(content)

    assert status == 2
    assert err.endswith(f"; its columns are separated by '{shown}': add --delimiter '{shown}'\n")
    assert not ledger.exists()
    assert imported(content, "--delimiter", shown).status == 0
    assert imported.hours() == {"red": Decimal(80)}


@pytest.mark.parametrize("delimiter", ["", "ab", "x", '"', "\n", " "])
def test_a_delimiter_is_one_character_that_separates(imported: Importer, delimiter: str) -> None:
    with pytest.raises(SystemExit):
        imported(lines(row(1)), "--delimiter", delimiter)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (f"{HEADER},tenant", "line 1: has the column tenant twice"),
        ("JobIDRaw|Account", "; add --format sacct for the output of sacct"),
        ("x" * 200_000, "line 1: has no column id, "),
    ],
)
def test_a_header_with_two_meanings_is_named(imported: Importer, header: str, problem: str) -> None:
    status, _, err = imported(f"{header}\n")

    assert (status, problem in err) == (2, True)


def test_a_column_that_is_not_read_may_occur_twice(imported: Importer) -> None:
    assert imported(f"{HEADER},name\n{row(1)},again\n").status == 0
    assert imported.hours() == {"red": Decimal(80)}


@pytest.mark.parametrize("damage", [slice(0, 60), slice(0, None)])
def test_a_compressed_file_that_is_damaged_is_named(run: Runner, tmp_path: Path, ledger: Path, damage: slice) -> None:
    content = bytearray(gzip.compress(lines(*map(row, range(500))).encode()))
    content[40:50] = b"\xff" * 10 if damage.stop is None else content[40:50]
    path = tmp_path / "jobs.csv.gz"
    path.write_bytes(content[damage])

    status, _, err = run("import", path, "--ledger", ledger)

    assert status == 2
    assert err.startswith(f"gputally: {path}: is incomplete or damaged: ")
    assert not ledger.exists()


def test_a_file_in_utf16_is_named(imported: Importer) -> None:
    assert imported(lines(row(1)).encode("utf-16")).err.endswith("is not text in UTF-8; save it as UTF-8\n")


def test_a_row_with_more_or_fewer_cells_than_the_header_is_rejected(imported: Importer) -> None:
    status, out, err = imported(
        lines(row(1), f"{row(2, 'blue')},surplus", row(3, "blue").rpartition(",")[0], "", row(4))
    )

    assert (status, out.rpartition("; ")[2]) == (9, "2 rejected\n")
    assert [line.removeprefix(f"{imported.path}: ") for line in err.splitlines()] == [
        "line 3: has 9 cells, but the header has 8; put texts that contain ',' in quotes",
        "line 4: has 7 cells, but the header has 8; put texts that contain ',' in quotes",
    ]
    assert imported.hours() == {"red": Decimal(160)}


def test_texts_in_quotes_may_contain_anything_else(imported: Importer) -> None:
    names = ["a,b", 'say "x"', "two\nlines", "\x85\u2028", "|;\t", "\0"]
    text = io.StringIO()
    csv.writer(text).writerows(
        [row(number).split(",", 1)[0], name, *row(number).split(",")[2:]] for number, name in enumerate(names)
    )

    assert imported(f"{HEADER}\n{text.getvalue()}").status == 0
    assert imported.hours() == {"red": Decimal(80 * len(names))}


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            ['"sweep', "plain", 'eval"'],
            "line 3: up to line 5, a text in quotes has a line break and ',': it may be several",
        ),
        (['"sweep', "plain", 'ev"al'], "line 3: ',' expected after '\"' in line 5; close quotes"),
        (['"sweep', "plain", "eval"], "line 3: unexpected end of data in line 6; close quotes"),
    ],
)
def test_a_quote_that_a_program_did_not_double_takes_no_row_for_another(
    imported: Importer, names: list[str], problem: str
) -> None:
    """If the file cannot be read that way, the lines after the first are rows of their own."""
    status, out, err = imported(
        lines(row(1), *[row(2 + number, "blue", name) for number, name in enumerate(names)], row(9))
    )

    assert (status, out.rpartition("; ")[2]) == (9, "1 rejected\n")
    assert err.startswith(f"{imported.path}: {problem}")
    assert imported.hours() == {"red": Decimal(160)} | ({} if "several" in problem else {"blue": Decimal(160)})


@pytest.mark.parametrize("opened", [[2], [2, 400], [2, 3, 4, 5], [2, 3000], [4000]])
def test_an_open_quote_costs_only_its_own_row(imported: Importer, opened: list[int]) -> None:
    """However many follow: no text has as many characters, or no row as many lines."""
    rows = [row(number, "blue", '"open' if number in opened else "plain") for number in range(4001)]

    status, out, _ = imported(lines(*rows))

    counted = f"{4001 - len(opened):,} jobs new, 0 changed, 0 unchanged; 0 without GPUs or never started"
    assert (status, out) == (9, f"{counted}; {len(opened)} rejected\n")
    assert imported.hours() == {"blue": Decimal(80 * (4001 - len(opened)))}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"end": "9999-12-31T00:00:00"}, "end: '9999-12-31T00:00:00' is not between 1970 and 2199"),
        ({"end": "9999-12-31T23:59:59-14:00"}, "end: '9999-12-31T23:59:59-14:00' is not between 1970 and 2199"),
        ({"end": "0001-01-01T00:00:00+14:00"}, "end: '0001-01-01T00:00:00+14:00' is not between 1970 and 2199"),
        ({"end": "2200-01-01"}, "end: '2200-01-01' is not between 1970 and 2199"),
        ({"end": "2026/10/02"}, "end: '2026/10/02' is not a time"),
        ({"end": "999999999999"}, "end: '999999999999' is not between 1970 and 2199"),
        ({"gpus": "1000001"}, "gpu_count: 1000001 is more than one job may have (1000000)"),
        ({"gpus": "inf"}, "gpu_count: 'inf' is not a whole number"),
        ({"gpus": "-8"}, "gpu_count: '-8' is not a whole number"),
        ({"gpus": "٣"}, "gpu_count: '٣' is not a whole number"),
        ({"tenant": "r\x1b[2J"}, "tenant: 'r\\x1b[2J' has characters that are not printable"),
        ({"tenant": "der\u202eeulb"}, "tenant: 'der\\u202eeulb' has characters that are not printable"),
        ({"end": "\u202e1"}, "end: '\\u202e1' has characters that are not printable"),
    ],
)
def test_what_no_report_could_show_is_rejected(imported: Importer, change: dict[str, str], problem: str) -> None:
    status, out, err = imported(lines(row(1), row(2, **change)), "--zero", "2026-01-01")

    assert (status, out.rpartition("; ")[2]) == (9, "1 rejected\n")
    assert err.startswith(f"{imported.path}: line 3, {problem}")
    assert imported.hours() == {"red": Decimal(80)}


def test_a_row_without_gpus_is_never_rejected(imported: Importer) -> None:
    status, out, _ = imported(lines(row(1), row(2, end="2026-09-01T00:00:00", gpus="0"), row(3, end="soon", gpus="0")))

    assert (status, out.split("; ")[1]) == (0, "2 without GPUs or never started")


@pytest.mark.parametrize(
    ("flag", "text", "problem"),
    [
        ("--zero", "9999-12-31", "'9999-12-31' is not between 1970 and 2199"),
        ("--until", "2026-10-01T09:00:00", "is before the last time in the file, 2026-10-01T10:00:00 UTC"),
        (
            "--until",
            "2026-10-25T02:30:00",
            "2026-10-25T02:30:00 is ambiguous in Europe/Berlin (end of daylight saving time); add an offset",
        ),
        (
            "--zero",
            "2026-03-29T02:30:00",
            "2026-03-29T02:30:00 is nonexistent in Europe/Berlin (start of daylight saving time)",
        ),
    ],
)
def test_a_flag_is_a_time_that_exists_once(
    imported: Importer, ledger: Path, flag: str, text: str, problem: str
) -> None:
    zone = "UTC" if "before" in problem else "Europe/Berlin"

    status, _, err = imported(lines(row(1)), flag, text, "--time-zone", zone)

    assert status == 2
    assert err.startswith(f"gputally: {flag}: ")
    assert problem in err
    assert not ledger.exists()


def test_ambiguous_local_times_of_csv_are_counted_too(imported: Importer) -> None:
    status, _, err = imported(lines(row(1, end="2026-10-25T02:30:00")), "--time-zone", "Europe/Berlin")

    assert status == 9
    total = "1 jobs have an ambiguous local time (end of daylight saving time); up to 8.0000 GPU-hours less are billed"
    assert total in err
    assert imported.hours() == {"red": Decimal(8 * (24 * 24 + 2)) + 4}
