"""Reports of whole days are the same before and after the retention; others say where the details end."""

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.units import US_PER_DAY
from gputally.reports.choices import COLUMNS, TIME_DIMENSIONS
from tests.contract.records import FACTS, pod, segment, step, us
from tests.contract.test_measured_time import hour
from tests.contract.test_usage import reported
from tests.unit.commands.sample import Runner

DAY = 86_400
WHOLE_DAYS = ("day", "week", "month", "weekday")
SUMMED = [each for each in COLUMNS if each != "pod" and each not in TIME_DIMENSIONS]
UNOBSERVED = "Unobserved GPU-hours are not known: the retention left only daily sums of a part of the period."
REMEDY = "use whole days in UTC, and neither pods, hours nor focus, or a backup from before"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two pods of the first two days and one that lasts, on a node with capacity, with usage."""
    path = tmp_path / "l.db"
    ended = {
        "a": pod("a", segment(2000, DAY + 3600), end_us=us(DAY + 3600), gap=None),
        "b": pod("b", segment(DAY, DAY + 7), end_us=us(DAY + 7), gap=None, job="other", owner=None, result=None),
    }
    with SqliteLedger(path) as ledger:
        ledger.write(step(at=1000, capacity={("node-1", us(1000)): ("n1", FACTS)}))
        for each in ended.values():
            ledger.write(step(each, at=DAY + 3600))
        lasts = pod("c", segment(DAY, None, tenant="blue"), end_us=None, end_by=None, gap=None)
        ledger.write(step(lasts, at=DAY + 3601, pods={"c": lasts}))
        used = replace(hour(DAY + 1, DAY + 3000, used=1000, burst=7), open=False)
        ledger.write(reported(used, at=9 * DAY))
    return path


def roll_up(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        assert [0, *ledger.roll_up(2 * US_PER_DAY)][-1] == 2


def known(out: str) -> object:
    """A report without unobserved GPU-hours, which are no longer known."""
    if not out.startswith("GPU cost"):
        return [[row.pop("unobserved", None), row][1] for row in csv.DictReader(io.StringIO(out))]
    return out.replace(f"\n{UNOBSERVED}\n", "")


@pytest.mark.parametrize("output", ["csv", "table"])
@pytest.mark.parametrize(
    "period", [(), ("--window", "1970-01-02"), ("--window", "1970-01-01", "--compare", "1970-01-02")]
)
def test_every_report_of_whole_days_stays_the_same(
    run: Runner, path: Path, period: tuple[str, ...], output: str
) -> None:
    def reports() -> list[object]:
        window = period or ("--window", "all", "--unallocated")
        flags: list[str | Path] = [*window, "--output", output, "--ledger", path]
        found = [run("report", "--by", by, *flags) for by in (*SUMMED, ",".join(SUMMED))]
        if "--compare" not in period:
            found += [run("report", "--by", f"tenant,{by}", *flags) for by in WHOLE_DAYS]
        assert {each.status for each in found} == {0}
        return [known(each.out) for each in found]

    before = reports()
    roll_up(path)

    assert reports() == before


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--by", "pod"), "pods are not known before 1970-01-03"),
        (("--by", "hour"), "1970-01-01 01:00:00 UTC is inside a day before 1970-01-03"),
        (("--by", "day", "--time-zone", "Asia/Tokyo"), "1970-01-01 15:00:00 UTC is inside a day before 1970-01-03"),
        (("--window", "1970-01-02T06:00/"), "1970-01-02 06:00:00 UTC is inside a day before 1970-01-03"),
        (("--output", "focus"), "pods are not known before 1970-01-03"),
    ],
)
def test_what_needs_more_detail_is_rejected_with_the_date_from_which_it_is_there(
    run: Runner, path: Path, flags: tuple[str, ...], problem: str
) -> None:
    roll_up(path)

    found = run("report", "--window", "all", *flags, "--ledger", path)

    assert (found.status, found.out) == (2, "")
    assert found.err.endswith(f"gputally: {problem}, of which the retention left daily sums; {REMEDY}\n")


@pytest.mark.parametrize("flags", [(), ("--preset", "team"), ("--unallocated", "weighted")])
def test_what_ended_unobserved_is_unknown_not_none_once_it_is_rolled_up(
    run: Runner, path: Path, flags: tuple[str, ...]
) -> None:
    def reported(window: str) -> tuple[set[float | None], bool]:
        given: list[str | Path] = ["--window", window, *flags, "--ledger", path]
        document = json.loads(run("report", *given, "--output", "json").out)
        shown = {run("report", *given, "--output", each).out.count(UNOBSERVED) for each in ("table", "html")}
        return {row["unobserved"] for row in (*document["rows"], *document["totals"])}, shown == {1}

    assert reported("all") == ({0}, False)
    roll_up(path)

    assert reported("all") == reported("1970-01-02") == ({None}, True)
    assert reported("1970-01-03") == ({0}, False)


def test_explain_says_where_details_begin(run: Runner, path: Path) -> None:
    roll_up(path)

    found = run("explain", "--window", "all", "--ledger", path)

    detail = "single allocations and hours are known only from 1970-01-03 UTC on; use a later period, or a backup"
    assert (found.status, found.out) == (2, "")
    assert f"gputally: {detail} from before\n" in found.err
    assert run("explain", "--window", "1970-01-03", "--ledger", path).status == 0


def test_info_shows_where_details_begin(run: Runner, path: Path) -> None:
    roll_up(path)

    found = run("ledger", "info", "--ledger", path).out.splitlines()

    assert "Details from        1970-01-03 00:00:00 UTC; 3 daily rows of what ended before" in found


def test_the_documented_query_adds_up_to_the_same(run: Runner, path: Path) -> None:
    sums = "sum(quantity * ((until_us - start_us) / 1000000)) AS seconds"
    older = "UNION ALL SELECT seconds FROM daily_allocations"
    query = f"SELECT sum(seconds) FROM (SELECT {sums} FROM allocation_segments {older})"
    before = run("ledger", "query", query, "--ledger", path, "--output", "csv").out
    roll_up(path)

    assert run("ledger", "query", query, "--ledger", path, "--output", "csv").out == before
