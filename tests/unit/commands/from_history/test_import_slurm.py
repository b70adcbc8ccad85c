"""`gputally import --format sacct`: nothing is quoted, names are hostile, jobs run several times, GPUs have parts."""

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from gputally.config.rules_file import default_rules
from tests.unit.commands.sample import Result, Runner

PLAIN = "JobIDRaw|Account|QOS|Partition|State|Submit|Start|End|AllocTRES|NodeList"
NAMED = "JobIDRaw|JobName|Account|QOS|Partition|State|Submit|Start|End|AllocTRES|NodeList"
DAY = "2026-10-01T00:00:00|2026-10-01T00:00:00|2026-10-01T10:00:00"
TRUST = ("--trust-names",)
BERLIN = ("--time-zone", "Europe/Berlin")
RULES = default_rules()


def row(
    job: int | str, account: str = "red", *, state: str = "COMPLETED", times: str = DAY, tres: str = "gres/gpu=8"
) -> str:
    return f"{job}|{account}|normal|gpu|{state}|{times}|{tres}|n1"


def named(job: int, name: str, account: str = "red", tres: str = "gres/gpu=8") -> str:
    return f"{job}|{name}|{account}|normal|gpu|COMPLETED|{DAY}|{tres}|n1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.txt"


@pytest.fixture
def imported(run: Runner, path: Path, ledger: Path) -> "Importer":
    return Importer(run, path, ledger)


class Importer:
    """Imports lines as a file, and reads the GPU-hours that the ledger has then."""

    def __init__(self, run: Runner, path: Path, ledger: Path) -> None:
        self._run, self._path, self._ledger = run, path, ledger

    def __call__(self, header: str, *lines: str, flags: tuple[str | Path, ...] = ()) -> Result:
        self._path.write_bytes("".join(f"{line}\n" for line in (header, *lines)).encode(errors="surrogateescape"))
        return self._run("import", self._path, "--format", "sacct", "--ledger", self._ledger, *flags)

    def hours(self, by: str = "tenant") -> dict[str, Decimal]:
        out = self._run("report", "--ledger", self._ledger, "--window", "all", "--output", "csv", "--by", by).out
        return {found[by]: Decimal(found["gpu_hours"]) for found in csv.DictReader(out.splitlines())}


def test_a_quote_in_a_name_swallows_no_rows(imported: Importer) -> None:
    status, out, _ = imported(
        NAMED, named(1, "a"), named(2, '"sweep'), named(3, "b", "blue"), named(4, 'eval"'), flags=TRUST
    )

    assert (status, out.partition(" ")[0]) == (0, "4")
    assert imported.hours() == {"red": Decimal(240), "blue": Decimal(80)}


@pytest.mark.parametrize("name", ["train|v2", f"x|red|normal|gpu|COMPLETED|{DAY}|gres/gpu=64|n1", "|"])
def test_a_name_with_a_separator_is_rejected_and_bills_nobody(imported: Importer, path: Path, name: str) -> None:
    status, out, err = imported(NAMED, named(1, "plain"), named(2, name, "blue"), flags=TRUST)

    assert (status, out.rpartition("; ")[2]) == (9, "1 rejected\n")
    assert f"{path}: line 3: has {11 + name.count('|')} cells, but the header has 11; a text that users choose" in err
    assert imported.hours() == {"red": Decimal(80)}


@pytest.mark.parametrize("name", ["plain", f"x\n2|victim|normal|gpu|COMPLETED|{DAY}|gres/gpu=512|n1|y"])
def test_a_file_with_texts_that_users_choose_is_refused_unless_they_are_trusted(
    imported: Importer, path: Path, ledger: Path, name: str
) -> None:
    """In the last column, a name with a line break is two rows that have all their cells."""
    lines = f"{PLAIN}|Comment|JobName", f"{row(1)}|a|{name}"

    status, out, err = imported(*lines)

    assert (status, out) == (2, "")
    assert err == (
        f"gputally: {path}: line 1: has texts that users choose (Comment, JobName): one with a line break can bill "
        "others as a row of its own; export without them, or add --trust-names if you trust these users\n"
    )
    assert not ledger.exists()
    imported(*lines, flags=TRUST)
    assert imported.hours()["red"] == Decimal(80)


def test_a_line_break_in_a_name_is_rejected(imported: Importer) -> None:
    lines = named(1, "plain"), named(2, "two\nlines", "blue"), named(3, "\x85\u2028\r\x00")

    status, out, err = imported(NAMED, *lines, flags=TRUST)

    assert (status, out.rpartition("; ")[2]) == (9, "2 rejected\n")
    assert [line.split(":")[1] for line in err.splitlines()[:2]] == [" line 3", " line 4"]
    assert imported.hours() == {"red": Decimal(160)}


def test_bytes_that_are_not_utf8_spoil_only_the_cells_that_are_read(imported: Importer) -> None:
    status, _, err = imported(
        NAMED, named(1, "caf\udce9"), named(2, "plain", "r\udce9d"), named(3, "plain", "a\x1bb"), flags=TRUST
    )

    assert status == 9
    assert "line 3, Account: 'r\\udce9d' has characters that are not printable, or is not text in UTF-8" in err
    assert "line 4, Account: 'a\\x1bb' has characters that are not printable" in err
    assert imported.hours() == {"red": Decimal(80)}


@pytest.mark.parametrize("delimiter", ["|", "\x1f", "^", "@@", "\t", "|~|"])
def test_the_header_shows_the_delimiter(imported: Importer, delimiter: str) -> None:
    lines = [line.replace("|", delimiter) for line in (NAMED, named(1, "plain"))]

    assert imported(*lines, flags=TRUST).status == 0
    assert imported.hours() == {"red": Decimal(80)}


def test_a_trailing_delimiter_a_bom_and_line_ends_of_windows_are_read(imported: Importer) -> None:
    assert imported(f"\ufeff{PLAIN}|\r", f"{row(1)}|\r").status == 0
    assert imported.hours() == {"red": Decimal(80)}


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (PLAIN.replace("|", " "), "line 1: has no column JobIDRaw, Account, "),
        (f"{PLAIN}|Account", "line 1: has the column Account twice"),
        ("\x00J\x00o\x00b", "is not text in UTF-8; save it as UTF-8"),
    ],
)
def test_a_header_that_cannot_be_read_is_named(imported: Importer, header: str, problem: str) -> None:
    status, _, err = imported(header, row(1))

    assert (status, problem in err) == (2, True)


REQUEUED = [
    row(235, state="PREEMPTED", times="2026-10-01T00:00:00|2026-10-01T00:00:00|2026-10-01T05:00:00"),
    row(235, state="REQUEUED", times="2026-10-01T05:00:00|2026-10-01T06:00:00|2026-10-01T09:00:00"),
    row(235, times="2026-10-01T09:00:00|2026-10-01T10:00:00|2026-10-01T11:00:00"),
]


def test_each_run_of_a_requeued_job_counts_once(imported: Importer) -> None:
    first, again, more = (
        imported(PLAIN, *REQUEUED[:2]),
        imported(PLAIN, *REQUEUED[:2]),
        imported(PLAIN, *REQUEUED[::-1]),
    )

    assert [each.out.split(";")[0] for each in (first, again, more)] == [
        "2 jobs new, 0 changed, 0 unchanged",
        "0 jobs new, 0 changed, 2 unchanged",
        "1 jobs new, 0 changed, 2 unchanged",
    ]
    assert imported.hours("outcome") == {"preempted": Decimal(40), "deleted": Decimal(24), "succeeded": Decimal(8)}
    assert imported.hours("job") == {"235": Decimal(72)}


def test_a_run_that_has_ended_since_is_revised_and_a_row_twice_is_rejected(imported: Importer, path: Path) -> None:
    imported(PLAIN, REQUEUED[0], row(235, state="RUNNING", times="2026-10-01T05:00:00|2026-10-01T06:00:00|Unknown"))

    status, out, err = imported(PLAIN, *REQUEUED, REQUEUED[1])

    assert (status, out) == (9, "1 jobs new, 1 changed, 1 unchanged; 0 without GPUs or never started; 1 rejected\n")
    problem = "235 is in an earlier row too; every run of a job has one row and a start of its own"
    assert err == f"{path}: line 5, JobIDRaw: {problem}\n"
    assert imported.hours() == {"red": Decimal(72)}


def test_a_resized_job_has_a_row_for_each_size(imported: Importer) -> None:
    smaller = row(7, times="2026-10-01T02:00:00|2026-10-01T02:00:00|2026-10-01T05:00:00", tres="gres/gpu=4")

    assert imported(PLAIN, row(7, state="RESIZING", times=DAY.replace("T10", "T02")), smaller).status == 0
    assert imported.hours("outcome") == {"unknown": Decimal(16), "succeeded": Decimal(12)}


@pytest.mark.parametrize(
    ("state", "times", "result"),
    [
        ("PENDING", "2026-10-01T00:00:00|2026-10-02T00:00:00|Unknown", "1 without GPUs or never started; 0 rejected\n"),
        ("REQUEUED", "2026-10-01T00:00:00|Unknown|Unknown", "1 without GPUs or never started; 0 rejected\n"),
        (
            "REQUEUED",
            "2026-10-01T00:00:00|2026-10-01T00:00:00|Unknown",
            "0 without GPUs or never started; 1 rejected\n",
        ),
        ("REVOKED", DAY, "0 without GPUs or never started; 1 rejected\n"),
    ],
)
def test_what_never_started_has_no_gpus(imported: Importer, state: str, times: str, result: str) -> None:
    assert imported(PLAIN, row(1), row(2, state=state, times=times)).out.endswith(f"; {result}")
    assert imported.hours() == {"red": Decimal(80)}


def test_runs_that_restarts_counts_and_the_file_lacks_are_named(imported: Importer, path: Path) -> None:
    lines = [f"{line}|{number}" for number, line in enumerate(REQUEUED)]

    alone, all_of_them = imported(f"{PLAIN}|Restarts", lines[2]), imported(f"{PLAIN}|Restarts", *lines)

    assert alone.err == (
        f"{path}: 1 earlier runs of its jobs, which Restarts counts, are not in the file; "
        "export with sacct --duplicates, and from before they began\n"
    )
    assert all_of_them.err == ""


BACKWARDS = "2026-10-01T05:00:00|2026-10-01T06:00:00|2026-10-01T01:00:00"


@pytest.mark.parametrize(
    "line",
    [
        row(2, times=BACKWARDS, tres="cpu=4"),
        row(2, state="NEW_STATE", times="|never|", tres=""),
        row("2.batch", times=BACKWARDS),
        row("2.0", state="NEW_STATE", tres="gres/gpu=4K"),
    ],
)
def test_rows_without_gpus_and_steps_are_never_rejected(imported: Importer, line: str) -> None:
    status, out, err = imported(f"{PLAIN}|Restarts", f"{row(1)}|0", f"{line}|3")

    assert (status, err, out.split("; ")[1:]) == (0, "", ["1 without GPUs or never started", "0 rejected\n"])


@pytest.mark.parametrize("change", [{"times": BACKWARDS}, {"tres": "gres/gpu=4K"}, {"state": "NEW_STATE"}])
def test_a_run_whose_row_is_rejected_is_in_the_file(imported: Importer, change: dict[str, str]) -> None:
    _, out, err = imported(f"{PLAIN}|Restarts", f"{row(5, **change)}|0", f"{row(5)}|1")

    assert out.endswith("; 1 rejected\n")
    assert len(err.splitlines()) == 1


def test_local_times_of_another_zone_do_not_count_a_second_time(imported: Importer) -> None:
    imported(PLAIN, *REQUEUED)

    status, _, err = imported(PLAIN, *REQUEUED, flags=BERLIN)

    assert status == 4
    assert (
        "has jobs of 'import' by --time-zone UTC; by Europe/Berlin they would start at other times and count twice"
        in err
    )
    assert imported(PLAIN, row(1), flags=(*BERLIN, "--source", "other")).status == 0
    assert imported.hours() == {"red": Decimal(152)}


@pytest.mark.parametrize(
    ("tres", "model", "hours"),
    [
        ("billing=8,gres/gpu:a100_1g.10gb=1,gres/gpu=1,node=1", "a100", "1.428570"),
        ("gres/gpu:nvidia_a100_3g.40gb=2", "nvidia_a100", "8.571420"),
        ("gres/gpu:a30_1g.6gb=1", "a30", "2.500000"),
        ("gres/gpu:1g.10gb=7", "unknown", "9.999990"),
        ("gres/gpu:1g.10gb+me=1", "unknown", "1.428570"),
        ("gres/gpu:a100=2,gres/gpu:a100_1g.10gb=1,gres/gpu=3", "a100", "21.428570"),
        ("gres/gpu=3,gres/gpu:a100=2,gres/gpu:v100=1", "unknown", "30.000000"),
        ("gres/gpu:a100=2,gres/gpu=3", "unknown", "30.000000"),
        ("gres/gpu:a100=2,gres/gpu=2,gres/gpumem=64G,gres/gpuutil=50", "a100", "20.000000"),
        ("gres/gpu:a100=0,gres/gpu:h100=1,gres/shard=0", "h100", "10.000000"),
        ("gres/shard=2", "unknown", "5.000000"),
        ("gres/shard:t4=1,gres/shard=1", "t4", "2.500000"),
        ("gres/mps=50", "unknown", "5.000000"),
        ("gres/gpu=1000000", "unknown", "10000000.000000"),
    ],
)
def test_gpus_and_parts_of_gpus_weigh_what_they_are(imported: Importer, tres: str, model: str, hours: str) -> None:
    assert imported(PLAIN, row(1, tres=tres), flags=("--shards-per-gpu", "4", "--mps-per-gpu", "100")).status == 0
    assert imported.hours("gpu_model") == {model: Decimal(hours)}


def test_the_basis_of_mig_slices_is_that_of_the_configuration(imported: Importer, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("kind: Configuration\nmig: {basis: memory}\n")
    tres = ["gres/gpu:a100_3g.40gb=1", "gres/gpu:a100-80gb_1g.20gb=1"]

    imported(PLAIN, *[row(number, tres=text) for number, text in enumerate(tres)], flags=("--config.file", config))

    assert imported.hours("job") == {"0": Decimal(5), "1": Decimal("2.5")}


@pytest.mark.parametrize(
    ("tres", "problem"),
    [
        ("gres/gpu=9999999", "gres/gpu=9999999 is more than one job may have (1000000)"),
        ("gres/gpu:a100=999999,gres/gpu:v100=2", "gres/gpu=1000001 is more than one job may have (1000000)"),
        ("gres/gpu=4K", "'4K' of gres/gpu is not a whole number"),
        ("gres/gpu=NONE", "'NONE' of gres/gpu is not a whole number"),
        ("gres/gpu=-1", "'-1' of gres/gpu is not a whole number"),
        ("gres/gpu=", "'' of gres/gpu is not a whole number"),
        ("gres/gpu:a100=4,gres/gpu=2", "gres/gpu=2 is less than the amounts of its types, 4"),
        ("gres/gpu=2,gres/gpu=2", "has gres/gpu twice"),
        ("gres/gpu:0g.10gb=1", "0g.10gb is not a MIG profile"),
        ("gres/gpu:a100_0c.1g.10gb=1", "a100_0c.1g.10gb is not a MIG profile"),
        ("gres/shard=2", "gres/shard=2 is part of a GPU; say with --shards-per-gpu how many a GPU has"),
        ("gres/mps=50", "gres/mps=50 is part of a GPU; say with --mps-per-gpu how many a GPU has"),
        ("gres/gpu=1,gres/mps=50", "has gres/gpu and gres/mps; which of them are shares of the others is not known"),
    ],
)
def test_an_amount_that_is_not_certain_is_rejected(imported: Importer, path: Path, tres: str, problem: str) -> None:
    status, _, err = imported(PLAIN, row(1), row(2, "blue", tres=tres))

    assert (status, err) == (9, f"{path}: line 3, AllocTRES: {problem}\n")
    assert imported.hours() == {"red": Decimal(80)}


def test_resources_that_are_not_gpus_are_named(imported: Importer, path: Path) -> None:
    status, out, err = imported(PLAIN, row(1), row(2, tres="cpu=4,gres/a100=4,gres/fpga:x=1"), row(3, tres="cpu=4"))

    assert (status, err) == (0, f"{path}: not counted as GPUs: gres/a100, gres/fpga\n")
    assert out.endswith("; 2 without GPUs or never started; 0 rejected\n")


NIGHT = "2026-10-25T{}:00"
"""In Berlin, local times from 02:00 to 03:00 are ambiguous."""


def night(submit: str, start: str, end: str) -> str:
    return "|".join("Unknown" if each == "Unknown" else NIGHT.format(each) for each in (submit, start, end))


@pytest.mark.parametrize(
    ("times", "hours"),
    [
        (night("01:00", "01:00", "03:00"), 3),
        (night("01:00", "02:50", "02:10"), Decimal(1) / 3),  # it began in the first of both hours
        (night("02:50", "02:10", "03:00"), Decimal(5) / 6),  # it was submitted in the first, so it began in the second
        (night("02:50", "02:10", "02:20"), Decimal(1) / 6),
    ],
)
def test_the_order_of_times_decides_between_ambiguous_times(imported: Importer, times: str, hours: Decimal) -> None:
    status, _, err = imported(PLAIN, row(1, times=times, tres="gres/gpu=1"), flags=BERLIN)

    assert (status, err) == (0, "")
    assert imported.hours() == {"red": round(Decimal(hours), 6)}


@pytest.mark.parametrize(
    ("times", "column", "hours", "missing"),
    [
        (night("01:00", "01:30", "02:30"), "End", 8, 8),
        (night("01:00", "02:30", "04:30"), "Start", 16, 8),
        (night("02:00", "02:10", "02:40"), "Start", 4, 8),
        (night("02:30", "01:30", "02:30"), "End", 8, 8),  # submitted again after its start
    ],
)
def test_a_time_that_remains_ambiguous_is_counted_and_named(
    imported: Importer, path: Path, times: str, column: str, hours: int, missing: int
) -> None:
    status, out, err = imported(PLAIN, row(1, times=times), row(2, "blue"), flags=BERLIN)

    assert (status, out.partition(",")[0]) == (9, "2 jobs new")
    first, last = err.splitlines()
    assert first.startswith(f"{path}: line 2, {column}: 2026-10-25T02:")
    assert first.endswith(
        f" is ambiguous in Europe/Berlin; the shorter run is billed (up to {missing}.0000 GPU-hours less)"
    )
    assert last == (
        f"{path}: 1 jobs have an ambiguous local time (end of daylight saving time); up to {missing}.0000 GPU-hours "
        "less are billed; export times in UTC or with an offset"
    )
    assert imported.hours() == {"red": Decimal(hours), "blue": Decimal(80)}


def test_a_run_that_began_at_an_ambiguous_time_stays_the_same_run_when_it_ends(imported: Importer) -> None:
    began = night("01:00", "02:50", "Unknown")
    imported(PLAIN, row(1, state="RUNNING", times=began), flags=BERLIN)

    result = imported(PLAIN, row(1, times=night("01:00", "02:50", "02:10")), flags=BERLIN)

    assert (result.status, result.out.split(";")[0]) == (0, "0 jobs new, 1 changed, 0 unchanged")
    assert imported.hours() == {"red": Decimal("2.666667")}


def test_a_time_with_an_offset_is_never_ambiguous(imported: Importer) -> None:
    times = "2026-10-25T01:00:00+0200|2026-10-25T02:30:00+0200|2026-10-25T02:30:00+0100"

    assert imported(PLAIN, row(1, times=times), flags=BERLIN) == (
        *(0, "1 jobs new, 0 changed, 0 unchanged; 0 without GPUs or never started; 0 rejected\n", ""),
    )
    assert imported.hours() == {"red": Decimal(8)}


def test_a_nonexistent_local_time_is_rejected(imported: Importer, path: Path) -> None:
    times = "2026-03-29T00:00:00|2026-03-29T01:00:00|2026-03-29T02:30:00"

    status, _, err = imported(PLAIN, row(1, times=times), row(2), flags=BERLIN)

    problem = "2026-03-29T02:30:00 is nonexistent in Europe/Berlin (start of daylight saving time); check --time-zone"
    assert (status, err) == (9, f"{path}: line 2, End: {problem}\n")
    assert imported.hours() == {"red": Decimal(80)}
