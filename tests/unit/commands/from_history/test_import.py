"""`gputally import`: every row becomes an allocation, is counted as without GPUs, or is rejected with its reason."""

import csv
import json
from decimal import Decimal
from pathlib import Path

import pytest

from gputally.errors import LedgerError
from gputally.ledger.sqlite.writer import SqliteLedger
from tests.behaviour.traces import FOLDER
from tests.unit.commands.sample import Result, Runner, closed

HEADER = "id,tenant,qos,gpu_type,gpu_count,gpu_milli,submit,start,end,node,status"
GOOD = "a,red,low,A100,2,2000,2026-10-01T00:00:00,2026-10-01T01:00:00,2026-10-01T03:30:00,n1,Succeeded"
SACCT = "JobIDRaw|Account|QOS|Partition|State|Submit|Start|End|AllocTRES|NodeList"
PRICES = """
kind: PriceBook
currency: USD
basis: node
rules:
  - match: {gpu_model: A100}
    prices: [{price: 2.00, effective_from: always}, {price: 3.00, effective_from: "2026-10-01T02:00:00Z"}]
"""


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def imported(run: Runner, path: Path, ledger: Path, *flags: str | Path) -> Result:
    return run("import", path, "--ledger", ledger, *flags)


def rows(run: Runner, ledger: Path, *flags: str | Path) -> list[dict[str, str]]:
    out = run("report", "--ledger", ledger, "--window", "all", "--output", "csv", *flags).out
    return list(csv.DictReader(out.splitlines()))


def hours(run: Runner, ledger: Path, by: str, *flags: str | Path) -> dict[str, Decimal]:
    return {row[by]: Decimal(row["gpu_hours"]) for row in rows(run, ledger, "--by", by, *flags)}


def test_a_row_becomes_an_allocation_with_its_prices(run: Runner, tmp_path: Path, ledger: Path) -> None:
    prices = write(tmp_path / "prices.yaml", PRICES)

    status, out, err = imported(run, write(tmp_path / "jobs.csv", HEADER, GOOD), ledger, "--prices.file", prices)

    assert (status, err) == (0, "")
    assert out == "1 jobs new, 0 changed, 0 unchanged; 0 without GPUs or never started; 0 rejected\n"
    [row] = rows(run, ledger, "--by", "tenant,tier,job,gpu_model,node,outcome")
    assert [row[name] for name in ("tenant", "tier", "job", "gpu_model", "node", "outcome")] == [
        *("red", "low", "a", "A100", "n1", "succeeded")
    ]
    assert (row["gpu_hours"], row["cost"], row["currency"]) == (
        "5.000000",
        "13.000000",
        "USD",
    )  # 2 x (1 h x 2 + 1.5 x 3)


def test_importing_again_changes_nothing_and_a_changed_row_is_revised(
    run: Runner, tmp_path: Path, ledger: Path
) -> None:
    runs = GOOD.replace("2026-10-01T03:30:00", "").replace("Succeeded", "Running")
    other = GOOD.replace("a,red", "b,blue")
    first = imported(run, write(tmp_path / "jobs.csv", HEADER, runs, other), ledger)
    before = hours(run, ledger, "tenant")
    again = imported(run, tmp_path / "jobs.csv", ledger)
    later = imported(run, write(tmp_path / "jobs.csv", HEADER, GOOD.replace("03:30", "05:00"), other), ledger)

    assert [each.out.split(";")[0] for each in (first, again, later)] == [
        "2 jobs new, 0 changed, 0 unchanged",
        "0 jobs new, 0 changed, 2 unchanged",
        "0 jobs new, 1 changed, 1 unchanged",
    ]
    assert before == {"red": Decimal(5), "blue": Decimal(5)}  # a running job has run up to the last time in the file
    assert hours(run, ledger, "tenant") == {"red": Decimal(8), "blue": Decimal(5)}
    assert run("ledger", "check", "--ledger", ledger).status == 0


def test_a_running_job_has_run_until_the_given_time(run: Runner, tmp_path: Path, ledger: Path) -> None:
    runs = GOOD.replace("2026-10-01T03:30:00", "").replace("Succeeded", "Running")

    imported(run, write(tmp_path / "jobs.csv", HEADER, runs), ledger, "--until", "2026-10-01T02:15:00")

    [row] = rows(run, ledger, "--by", "outcome")
    assert (row["outcome"], row["gpu_hours"]) == ("running", "2.500000")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("2000", "many"), "gpu_milli: 'many' is not a whole number from 0 with at most 12 digits"),
        (("a,red", ",red"), "id: is empty; every row needs one"),
        (("Succeeded", "Done"), "status: unknown 'Done'; use one of succeeded, "),
        (("2026-10-01T03:30:00", "2026-10-01T00:30:00"), "end: is before start"),
        (("2026-10-01T03:30:00", ""), "end: is empty, but the status is Succeeded"),
        (("2026-10-01T03:30:00", "tomorrow"), "end: 'tomorrow' is not a time; use 2026-10-01T12:00:00, or seconds"),
        (("2026-10-01T00:00:00", "60"), "submit: '60' has no date; say with --zero when second 0 is"),
    ],
)
def test_a_wrong_row_is_rejected_with_line_column_and_reason(
    run: Runner, tmp_path: Path, ledger: Path, change: tuple[str, str], problem: str
) -> None:
    path = write(tmp_path / "jobs.csv", HEADER, GOOD.replace("a,red", "b,blue"), GOOD.replace(*change))

    status, out, err = imported(run, path, ledger, "--rejected", tmp_path / "rejected.csv")

    assert status == 9
    assert err.startswith(f"{path}: line 3, {problem}")
    assert out.startswith("1 jobs new, ")
    assert out.endswith("; 1 rejected\n")
    assert hours(run, ledger, "tenant") == {"blue": Decimal(5)}
    head, rejected = csv.reader((tmp_path / "rejected.csv").read_text().splitlines())
    assert (head, rejected[:2]) == (["line", "column", "reason"], ["3", problem.partition(":")[0]])


def test_a_second_row_of_a_job_is_rejected(run: Runner, tmp_path: Path, ledger: Path) -> None:
    path = write(tmp_path / "jobs.csv", HEADER, GOOD, GOOD.replace("2000", "4000"))

    assert imported(run, path, ledger).err == f"{path}: line 3, id: a is in an earlier row too; every job has one row\n"
    assert hours(run, ledger, "tenant") == {"red": Decimal(5)}


def test_many_rejected_rows_are_counted(run: Runner, tmp_path: Path, ledger: Path) -> None:
    path = write(tmp_path / "jobs.csv", HEADER, *[GOOD.replace("2000", "x")] * 25)

    status, out, err = imported(run, path, ledger)

    assert status == 9
    assert err.splitlines()[20:] == [
        f"{path}: 5 more rejected rows; write all with --rejected FILE",
        f"{path}: has no job that had GPUs; see 'gputally import --help' for its columns",
    ]
    assert out.endswith("; 25 rejected\n")
    assert not ledger.exists()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--zero", "soon"), "--zero: 'soon' is not a time; use 2026-10-01T12:00:00"),
        (("--until", "soon"), "--until: 'soon' is not a time; use 2026-10-01T12:00:00"),
        (("--time-zone", "Mars"), "--time-zone: unknown time zone 'Mars'"),
        (("--format", "sacct"), "line 1: has no column JobIDRaw, Account, QOS, State, Submit, Start, End, AllocTRES"),
    ],
)
def test_wrong_flags_are_named_before_anything_is_imported(
    run: Runner, tmp_path: Path, ledger: Path, flags: tuple[str, ...], problem: str
) -> None:
    status, _, err = imported(run, write(tmp_path / "jobs.csv", HEADER, GOOD), ledger, *flags)

    assert status == 2
    assert problem in err
    assert not ledger.exists()


def test_jobs_of_slurm(run: Runner, tmp_path: Path, ledger: Path) -> None:
    """Times are local; steps and jobs without GPUs have no GPU time."""
    night = "2026-10-24T22:00:00|2026-10-25T01:00:00|2026-10-25T04:00:00"  # 4 h: summer time ends in Berlin
    tres = "billing=32,cpu=32,gres/gpu=4,gres/gpu:h100=4,mem=64G,node=1"
    lines = [
        f"1|red|high|gpu|COMPLETED|{night}|{tres}|n[1-2]",
        f"1.batch|red|high|gpu|COMPLETED|{night}|{tres}|n1",
        f"2|red|low|gpu|CANCELLED by 1000|{night}|billing=1,cpu=8,gres/gpu=1|n1",
        f"3|blue|low|gpu|PREEMPTED|{night}|gres/gpu:a100=1,gres/gpu:h100=1|n1",
        f"4|blue|low|gpu|OUT_OF_MEMORY|{night}|gres/gpu=1|n1",
        f"5|blue|low|gpu|NODE_FAIL|{night}|gres/gpu=1|n1",
        f"6|blue|low|cpu|COMPLETED|{night}|cpu=8|n1",
        "7|blue|low|gpu|PENDING|2026-10-25T01:00:00|Unknown|Unknown|gres/gpu=1|None assigned",
        "8|blue|low|gpu|RUNNING|2026-10-25T01:00:00|2026-10-25T03:00:00|Unknown|gres/gpu=1|n1",
        f"9|blue|low|gpu|COMPLETED|{night.rpartition('|')[0]}|Unknown|gres/gpu=1|n1",
    ]
    path = write(tmp_path / "jobs.txt", SACCT, *lines)

    status, out, err = imported(run, path, ledger, "--format", "sacct", "--time-zone", "Europe/Berlin")

    assert (status, err) == (9, f"{path}: line 11, End: 'Unknown' does not fit the state COMPLETED\n")
    assert out == "6 jobs new, 0 changed, 0 unchanged; 3 without GPUs or never started; 1 rejected\n"
    found = {row["job"]: row for row in rows(run, ledger, "--by", "job,gpu_model,queue,outcome,tier")}
    assert {job: (Decimal(row["gpu_hours"]), row["gpu_model"], row["outcome"]) for job, row in found.items()} == {
        "1": (Decimal(16), "h100", "succeeded"),
        "2": (Decimal(4), "unknown", "deleted"),
        "3": (Decimal(8), "unknown", "preempted"),
        "4": (Decimal(4), "unknown", "failed"),
        "5": (Decimal(4), "unknown", "lost"),
        "8": (Decimal(1), "unknown", "running"),
    }
    assert (found["1"]["queue"], found["1"]["tier"]) == ("gpu", "high")


def test_the_ledger_of_a_cluster_takes_no_imports_and_an_imported_one_no_cluster(
    run: Runner, tmp_path: Path, ledger: Path
) -> None:
    path, live = write(tmp_path / "jobs.csv", HEADER, GOOD), closed(tmp_path / "live.db")
    imported(run, path, ledger)

    status, _, err = imported(run, path, live)

    assert status == 4
    assert "is the ledger of a cluster; import into a file of its own" in err
    with SqliteLedger(ledger) as mine, pytest.raises(LedgerError, match="belongs to the cluster imported"):
        mine.bind("cluster-1")


def test_history_counts_up_to_the_accounting_start_of_the_cluster(run: Runner, tmp_path: Path, ledger: Path) -> None:
    """The sample cluster is accounted from second 1000 of 1970 on, its first pods from then to second 1020."""
    live = closed(tmp_path / "live.db")
    path = write(tmp_path / "jobs.csv", HEADER, "a,old,low,A100,1,1000,0,400,1600,n1,Succeeded")
    imported(run, path, ledger, "--zero", "1970-01-01")

    alone = hours(run, live, "tenant")
    assert hours(run, live, "tenant", "--history", ledger) == {**alone, "old": Decimal("0.166667")}  # 600 s


@pytest.mark.parametrize("name", ["openb_pods", "helios15k_user", "philly15k_user"])
def test_real_traces_add_up_to_their_ground_truth(run: Runner, ledger: Path, name: str) -> None:
    path = FOLDER / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"no {path}; GPUTALLY_TRACES names the folder of traces")
    truth = json.loads((FOLDER / "ground_truth.json").read_text(), parse_float=Decimal)[name]

    status, out, _ = imported(run, path, ledger, "--zero", "2026-01-01")

    assert (status, out.rpartition("; ")[2]) == (0, "0 rejected\n")
    assert round(sum(hours(run, ledger, "tenant").values(), Decimal()), 4) == round(Decimal(truth["gpu_hours"]), 4)
    for key, by in TOTALS.items():
        if expected := truth.get(key):
            found = hours(run, ledger, by)
            named = {name or "unknown": value for name, value in expected.items()}
            assert {each: round(value, 4) for each, value in found.items()} == {
                SPELLED.get(each, each): round(Decimal(value), 4) for each, value in named.items()
            }


TOTALS = {
    "gpu_hours_by_tenant": "tenant",
    "gpu_hours_by_qos": "tier",
    "gpu_hours_by_gpu_type": "gpu_model",
    "gpu_hours_by_status": "outcome",
}
SPELLED = {"Pass": "succeeded", "Succeeded": "succeeded", "Failed": "failed", "Killed": "deleted", "Running": "deleted"}
