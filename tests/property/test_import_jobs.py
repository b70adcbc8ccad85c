"""Random files of jobs: what is imported is exactly what ran, whatever names look like and whenever clocks change.

The oracle knows the instants, the fractions of GPUs and the names from which a file was written; it parses nothing.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputally.accounting.prices.pricing import Pricing
from gputally.config.rules_file import default_rules
from gputally.errors import ConfigError
from gputally.importing.import_jobs import Counts, Plan, import_jobs, window_of
from gputally.importing.imported_job import ImportedJob, JobClassifier
from gputally.importing.job_file import JobFile, csv_format, sacct_format
from gputally.importing.row_cells import Rejected, TimeBase
from gputally.importing.slurm_jobs import SlurmShares
from gputally.ledger.sqlite.imported_jobs import SqliteImportLedger
from gputally.model.allocation import Outcome
from gputally.model.units import GPU, US_PER_SECOND

RULES = default_rules()
CHANGES = {
    "UTC": "2026-10-25T01:00",
    "Europe/Berlin": "2026-10-25T01:00",
    "America/New_York": "2026-11-01T06:00",
    "Australia/Lord_Howe": "2026-04-04T15:00",  # half an hour
    "Africa/Casablanca": "2026-02-15T02:00",
    "Asia/Kathmandu": "2026-10-25T01:00",
}
"""When clocks go back, in UTC."""
HOSTILE = st.text("\"'|,;ab \n\r\t\0\x1c\x85\u2028\ufeff\udce9=", max_size=12)
TYPES = {
    "": Fraction(1),
    "a100": Fraction(1),
    "v100": Fraction(1),
    "a100_1g.10gb": Fraction(1, 7),
    "a100_3g.40gb": Fraction(3, 7),
    "a30_1g.6gb": Fraction(1, 4),
    "2g.20gb": Fraction(2, 7),
}
"""What a GPU of each type is of a GPU; the first has no type."""
NOT_CERTAIN = [
    "gres/gpu=4K",
    "gres/gpu=9999999",
    "gres/gpu:a100=4,gres/gpu=2",
    "gres/shard=2",
    "gres/mps=50",
    "gres/gpu=inf",
]
ENDED = ["COMPLETED", "FAILED", "REQUEUED", "PREEMPTED", "NODE_FAIL", "CANCELLED by 1000", "RESIZING"]
COLUMNS = ("JobIDRaw", "Account", "QOS", "Partition", "State", "Submit", "Start", "End", "AllocTRES", "NodeList")


class Run(NamedTuple):
    """One run of a job: instants in seconds, GPUs, and how it is written."""

    job: int
    account: str
    submit: int
    start: int
    end: int
    state: str
    micro_gpus: int
    tres: str
    name: str


class SlurmFile(NamedTuple):
    runs: Sequence[Run]
    zone: str
    name_at: int | None
    """The place of the column JobName."""
    delimiter: str


@st.composite
def gpus(draw: st.DrawFn) -> tuple[int, str]:
    """µGPU and AllocTRES; 0 for what is not certain or no GPU."""
    if draw(st.integers(0, 9)) == 0:
        return 0, draw(st.sampled_from([*NOT_CERTAIN, "cpu=8", "", "gres/fpga=4"]))
    counts = draw(st.dictionaries(st.sampled_from(sorted(TYPES)), st.integers(1, 64), min_size=1, max_size=4))
    rest = counts.pop("", 0)
    parts = [f"gres/gpu:{kind}={count}" for kind, count in counts.items()]
    if rest or draw(st.booleans()):
        parts.append(f"gres/gpu={rest + sum(counts.values())}")
    micro = rest * GPU + sum(
        count * (GPU * TYPES[kind].numerator // TYPES[kind].denominator) for kind, count in counts.items()
    )
    return micro, ",".join(draw(st.permutations(["billing=8", "mem=64G", *parts])))


@st.composite
def slurm_files(draw: st.DrawFn) -> SlurmFile:
    zone = draw(st.sampled_from(sorted(CHANGES)))
    change = int(datetime.fromisoformat(CHANGES[zone]).replace(tzinfo=UTC).timestamp())
    runs: list[Run] = []
    for job in range(draw(st.integers(1, 5))):
        at = change + 60 * draw(st.integers(-300, 200))
        for _ in range(draw(st.integers(1, 3))):
            submit, at = at, at + 60 * draw(st.integers(0, 90))
            start, at = at, at + 60 * draw(st.integers(1, 150))
            micro, tres = draw(gpus())
            account, state = draw(st.sampled_from(["red", "blue"])), draw(st.sampled_from(ENDED))
            times = (submit, start, at) if micro or tres in NOT_CERTAIN else (at, start, submit)  # nobody reads them
            runs.append(Run(job, account, *times, state, micro, tres, draw(HOSTILE)))
    name_at = draw(st.sampled_from([None, *range(1, 9), len(COLUMNS)]))  # at 9, its pieces could be a NodeList
    return SlurmFile(draw(st.permutations(runs)), zone, name_at, draw(st.sampled_from(["|", "\t", ";"])))


def local(second: int, zone: str) -> str:
    return datetime.fromtimestamp(second, ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M:%S")


def written(file: SlurmFile) -> str:
    lines = []
    for run in file.runs:
        times = [local(second, file.zone) for second in (run.submit, run.start, run.end)]
        lines.append([str(run.job), run.account, "normal", "gpu", run.state, *times, run.tres, "n1"])
    if file.name_at is not None:
        for line, run in zip(lines, file.runs, strict=True):
            line.insert(file.name_at, run.name)
    header = list(COLUMNS)
    if file.name_at is not None:
        header.insert(file.name_at, "JobName")
    return "".join(f"{file.delimiter.join(line)}\n" for line in [header, *lines])


def spoils(run: Run, file: SlurmFile) -> bool:
    """Whether its name breaks its own row. A line break in the last column leaves a whole row before it."""
    if file.name_at is None:
        return False
    first, *others = run.name.split("\n")
    return file.delimiter in first or (bool(others) and file.name_at < len(COLUMNS))


def spans(run: Run, zone: str) -> set[tuple[int, int]]:
    """All starts and ends whose clock times are those of the run, in the order of its clock times."""

    def instants(second: int) -> Iterator[int]:
        for minutes in range(-120, 121, 30):
            if local(second + 60 * minutes, zone) == local(second, zone):
                yield second + 60 * minutes

    found = [each for each in product(*map(instants, (run.submit, run.start, run.end))) if sorted(each) == list(each)]
    return {(start, end) for _, start, end in found}


@contextmanager
def in_file(content: str) -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "jobs"
        path.write_bytes(content.encode(errors="surrogateescape"))
        yield path


@given(slurm_files())
def test_the_gpu_time_of_a_file_is_that_of_its_runs(file: SlurmFile) -> None:
    content = written(file)
    with in_file(content) as path:
        jobs = JobFile(path, sacct_format(SlurmShares(), trusts_names=True), TimeBase(zone=ZoneInfo(file.zone)))
        rows = list(jobs.rows())

    lines = [line for line in content.split("\n")[1:] if line not in ("", "\r")]
    assert len(rows) == len(lines)
    honest, seen = [], set[tuple[int, str]]()
    for run in file.runs:
        key = run.job, local(run.start, file.zone)
        if run.micro_gpus and not spoils(run, file) and key not in seen:
            seen.add(key)  # a second run that began at the same time by the clock is rejected
            honest.append(run)
    found = {(int(each.id), each.run_us): each for each in rows if isinstance(each, ImportedJob)}
    assert Counter(job for job, _ in found) == Counter(run.job for run in honest)
    certain = True
    for run, job in zip(honest, (each for each in rows if isinstance(each, ImportedJob)), strict=True):
        readings = spans(run, file.zone)
        assert (int(job.id), job.tenant, job.quantity) == (run.job, run.account, run.micro_gpus)
        assert job.end_us is not None
        seconds = (job.end_us - job.start_us) // US_PER_SECOND
        assert seconds == min(end - start for start, end in readings)
        assert (job.start_us // US_PER_SECOND, job.end_us // US_PER_SECOND) in readings
        certain &= len(readings) == 1
    assert jobs.is_certain is certain
    without = [run for run in file.runs if not run.micro_gpus and run.tres not in NOT_CERTAIN and not spoils(run, file)]
    assert sum(each is None for each in rows) == len(without)


@given(slurm_files(), st.data())
def test_no_name_is_read_as_a_row_that_no_job_had(file: SlurmFile, data: st.DataObject) -> None:
    """A forged row has the right number of cells if the name is in the last column."""
    row = file.delimiter.join(["99", "victim", *written(file).split("\n")[1].split(file.delimiter)[2:]])
    forged = data.draw(st.sampled_from(["", row, f"\n{row}", f"x\n{row}{file.delimiter}y", f"x\n{row}\n"]))
    runs = [run._replace(name=run.name + forged) for run in file.runs]
    file = file._replace(runs=runs, name_at=data.draw(st.sampled_from([file.name_at, len(COLUMNS)])))
    with in_file(written(file)) as path:
        jobs = JobFile(path, sacct_format(SlurmShares()), TimeBase(zone=ZoneInfo(file.zone)))
        if file.name_at is None:
            assert len(list(jobs.rows())) == len(runs)
        else:
            with pytest.raises(ConfigError, match="JobName"):
                list(jobs.rows())


@settings(max_examples=40)
@given(slurm_files(), st.integers(0, 5))
def test_importing_a_file_in_parts_and_again_bills_each_run_once(file: SlurmFile, first: int) -> None:
    with in_file(written(file)) as path:
        jobs = JobFile(path, sacct_format(SlurmShares(), trusts_names=True), TimeBase(zone=ZoneInfo(file.zone)))
        rows, again = [[each for each in jobs.rows() if isinstance(each, ImportedJob)] for _ in range(2)]
    if not rows:
        return
    window = window_of(rows)
    assert window
    classifier = JobClassifier(source="import", rules=RULES, pricing=Pricing(None, now_us=window.end_us))
    plan = Plan(classifier=classifier, window=window, terms="")
    with TemporaryDirectory() as folder, SqliteImportLedger(Path(folder) / "history.db") as ledger:
        counts = [Counts()]
        for part in (rows[:first], rows, again):
            counts += import_jobs(ledger, part, plan)
        total = sum(
            quantity * (end_us - start_us)
            for quantity, start_us, end_us in ledger._connection.execute(
                "SELECT quantity, start_us, end_us FROM current_segments"
            )
        )
    assert total == sum(job.quantity * (job.end_us - job.start_us) for job in rows if job.end_us)
    assert (counts[-1].new, counts[-1].changed, counts[-1].unchanged) == (0, 0, len(rows))


@st.composite
def csv_jobs(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    """Name, milli-GPUs, start and end of each job; the place is its ID."""
    found = []
    for name in draw(st.lists(HOSTILE, min_size=1, max_size=6)):
        start = 1_790_000_000 + draw(st.integers(0, 10_000))
        found.append((name, draw(st.integers(0, 4000)), start, start + draw(st.integers(0, 10_000))))
    return found


CSV_COLUMNS = ["id", "name", "tenant", "submit", "start", "end", "status", "gpu_milli"]


def csv_cells(jobs: Sequence[tuple[str, int, int, int]]) -> list[list[str]]:
    iso = [(local(start, "UTC"), local(end, "UTC")) for _, _, start, end in jobs]
    return [
        [str(number), name, "red", start, start, end, "Succeeded", str(milli)]
        for number, ((name, milli, _, _), (start, end)) in enumerate(zip(jobs, iso, strict=True))
    ]


def truths(jobs: Sequence[tuple[str, int, int, int]]) -> dict[str, tuple[int, int, int]]:
    return {
        str(number): (milli * 1000, start * US_PER_SECOND, end * US_PER_SECOND)
        for number, (_, milli, start, end) in enumerate(jobs)
        if milli
    }


def read_csv(
    content: str, delimiter: str
) -> tuple[dict[str, tuple[int, int, int]], list[ImportedJob | Rejected | None]]:
    with in_file(content) as path:
        rows = list(JobFile(path, csv_format(delimiter), TimeBase()).rows())
    jobs = [each for each in rows if isinstance(each, ImportedJob)]
    assert all(job.outcome is Outcome.SUCCEEDED and job.tenant == "red" and job.end_us is not None for job in jobs)
    return {job.id: (job.quantity, job.start_us, job.end_us or 0) for job in jobs}, rows


@given(
    csv_jobs(),
    st.sampled_from(",;\t"),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_a_csv_file_with_quotes_loses_only_names_that_may_be_rows(
    jobs: list[tuple[str, int, int, int]], delimiter: str, bom: str, quoting: Literal[0, 1]
) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=quoting).writerows([CSV_COLUMNS, *csv_cells(jobs)])

    found, rows = read_csv(bom + text.getvalue(), delimiter)

    suspicious = {str(n) for n, (name, *_) in enumerate(jobs) if delimiter in name and {"\n", "\r"} & set(name)}
    assert found == {job: truth for job, truth in truths(jobs).items() if job not in suspicious}
    assert len(rows) == len(jobs)
    assert sum(isinstance(each, Rejected) for each in rows) == len(suspicious)


@given(csv_jobs(), st.sampled_from(",;\t"))
def test_a_csv_file_without_quotes_bills_nothing_that_did_not_run(
    jobs: list[tuple[str, int, int, int]], delimiter: str
) -> None:
    """Only a line break could look like another row: it takes quotes to tell."""
    jobs = [(name.translate({10: "", 13: ""}), milli, start, end) for name, milli, start, end in jobs]
    content = "".join(f"{delimiter.join(cells)}\n" for cells in [CSV_COLUMNS, *csv_cells(jobs)])

    found, rows = read_csv(content, delimiter)

    assert found.items() <= truths(jobs).items()
    if all('"' not in name for name, *_ in jobs):
        assert found.keys() == {job for job in truths(jobs) if delimiter not in jobs[int(job)][0]}
    assert len(found) + sum(isinstance(each, Rejected) or each is None for each in rows) == len(rows)
    if not any(isinstance(each, Rejected) and "it may be several rows" in each.reason for each in rows):
        assert len(rows) == len(jobs)
