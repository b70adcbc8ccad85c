"""`gputally report` says what the ledger contains: the same sums in every format, equal to a recomputation."""

import csv
import io
import json
import shutil
from collections import Counter
from contextlib import redirect_stdout
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.commands.from_ledger.reading import LedgerFiles
from gputally.commands.from_ledger.report import report
from gputally.formatting.formats import FORMATS
from gputally.ledger.open import open_reader, reading_once
from gputally.ledger.records import SegmentRecord, Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.allocation import State
from gputally.model.price import Purchase
from gputally.model.units import GPU, PICO, US_PER_HOUR, to_datetime, to_us
from gputally.questions.parameter import InvalidQuestion
from gputally.questions.report import Report
from gputally.reports.choices import COLUMNS
from tests.conftest import Golden
from tests.contract.records import PRICE, pod, segment, step
from tests.contract.test_measured_time import WHOLE, hour
from tests.contract.test_usage import reported
from tests.unit.commands.sample import CLUSTER, Runner, names

HOUR = 3600
SECOND_DAY = 86_400
CHEAP = replace(
    PRICE, key="book/on-demand", per_gpu_hour=Decimal("0.4"), rate=4 * PICO // 10, purchase=Purchase.ON_DEMAND
)
PODS = [
    pod("a", segment(SECOND_DAY - HOUR, SECOND_DAY + 5), segment(SECOND_DAY + 5, SECOND_DAY + HOUR)),
    pod(
        "b", segment(SECOND_DAY, SECOND_DAY + 7 * HOUR, tenant="blue", price=CHEAP), job="infer", job_kind="Deployment"
    ),
    pod("c", segment(SECOND_DAY, SECOND_DAY + HOUR, state=State.STARTING, quantity=GPU // 3), namespace="other"),
    pod("d", segment(SECOND_DAY, None, price=None, tier="high"), end_us=None, end_by=None, gap=None, node="n2"),
    pod("e", segment(10, SECOND_DAY - 2 * HOUR, tenant="gone"), job="old"),
]
ACCOUNTED = SECOND_DAY + 9 * HOUR + 1
USAGE = [
    hour(SECOND_DAY, SECOND_DAY + HOUR, used=2700, burst=600, energy=900_000_000),
    hour(SECOND_DAY, SECOND_DAY + HOUR, of=replace(WHOLE, pod_uid="b"), since=2, used=1800),
    hour(SECOND_DAY + HOUR, SECOND_DAY + 2 * HOUR, of=replace(WHOLE, pod_uid="d"), since=3),
]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Five pods, of which one still runs; accounted from 00:16:40 on 1970-01-01 to 09:00:01 on the next day."""
    return filled(tmp_path / "l.db")


def filled(path: Path) -> Path:
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(*PODS, at=ACCOUNTED))
        ledger.write(reported(*USAGE, at=ACCOUNTED))
    return path


LABEL_OF_TIME = {
    "hour": "%Y-%m-%d %H:00",
    "day": "%Y-%m-%d",
    "month": "%Y-%m",
    "hour_of_day": "%H:00",
    "weekday": "%u %A",
}


def expected(path: Path, window: Window, columns: tuple[str, ...]) -> dict[tuple[str, ...], Fraction]:
    """GPU-hours by the columns, added up from the single segments, hour by hour."""
    found: Counter[tuple[str, ...]] = Counter()
    with open_reader(str(path)) as reader:
        for start_us in range(0, window.end_us, US_PER_HOUR):
            begin, end = max(start_us, window.start_us), min(start_us + US_PER_HOUR, window.end_us)
            for each in reader.segments(Window(begin, end)) if begin < end else ():
                labels = tuple(label(each, name, to_datetime(start_us)) for name in columns)
                found[labels] += ((each.segment.end_us or 0) - each.segment.start_us) * each.segment.quantity
    return {labels: Fraction(time, GPU * US_PER_HOUR) for labels, time in found.items()}


def label(each: SegmentRecord, column: str, at: datetime) -> str:
    if column == "week":
        return f"{(at - timedelta(days=at.weekday())):%Y-%m-%d}"
    if column == "hours":
        return "business" if at.weekday() < 5 and 9 <= at.hour < 17 else "other"
    if column in LABEL_OF_TIME:
        return at.strftime(LABEL_OF_TIME[column])
    if column == "purchase":
        return each.segment.price.purchase.value if each.segment.price else ""
    return str(getattr(each, {"pod": "name"}.get(column, column), None) or getattr(each.segment, column, ""))


@pytest.mark.parametrize("dimension", COLUMNS)
@pytest.mark.parametrize("window", ["all", "today", "yesterday", "1970-01-01T23:30/1970-01-02T00:30"])
def test_rows_equal_the_sums_of_segments(run: Runner, ledger: Path, dimension: str, window: str) -> None:
    found = json.loads(
        run("report", "--ledger", ledger, "--by", dimension, "--window", window, "--output", "json").out,
        parse_float=Decimal,
    )

    bounds = [found["window"][each] for each in ("from", "to")]
    columns = COLUMNS[dimension]
    sums = expected(ledger, _window(*bounds), columns)
    shown = {tuple(row[name] for name in columns): row["gpu_hours"] for row in found["rows"]}
    assert shown.keys() == sums.keys()
    assert all(abs(Fraction(shown[labels]) - hours) < Fraction(1, 10**6) for labels, hours in sums.items())
    assert sum(shown.values()) == sum(total["gpu_hours"] for total in found["totals"])


def _window(start: str, end: str) -> Window:
    return Window(to_us(datetime.fromisoformat(start)), to_us(datetime.fromisoformat(end)))


@pytest.mark.parametrize("output", FORMATS)
def test_a_bill_is_as_recorded(run: Runner, ledger: Path, golden: Golden, output: str) -> None:
    found = run("report", "--ledger", ledger, "--by", "tenant,job", "--window", "today", "--output", output)

    assert (found.status, found.err) == (0, "")
    golden.check(f"report.{output}", found.out)


@pytest.mark.parametrize("output", FORMATS)
def test_a_comparison_is_as_recorded(run: Runner, ledger: Path, golden: Golden, output: str) -> None:
    compared = ("--window", "today", "--compare", "previous", "--output", output)
    found = run("report", "--ledger", ledger, *compared)

    note = "gputally: Compares 9.0 h with 8.7 h: the change of quantity includes that.\n"
    assert (found.status, found.err) == (0, note if output == "csv" else "")
    golden.check(f"comparison.{output}", found.out)


@pytest.mark.parametrize("earlier", ["previous", "yesterday", "1970-01-01"])
def test_a_period_that_is_not_over_is_compared_with_as_many_hours_of_the_earlier_one(
    run: Runner, ledger: Path, earlier: str
) -> None:
    """At 06:00 today has 6 hours, and yesterday's first 6 are known from 00:16:40 on."""
    flags = ("--window", "today", "--cut-off", "1970-01-02T06:00", "--compare", earlier, "--output")
    found = json.loads(run("report", "--ledger", ledger, *flags, "json").out)
    table = run("report", "--ledger", ledger, *flags, "table").out

    assert found["window"] == {"from": "1970-01-02T00:00:00Z", "to": "1970-01-02T06:00:00Z"}
    assert found["compared_to"] == {"from": "1970-01-01T00:16:40Z", "to": "1970-01-01T06:00:00Z"}
    assert "\nCompares 6.0 h with 5.7 h: the change of quantity includes that.\n" in table


def test_periods_that_are_over_are_compared_whole_and_their_lengths_are_named(run: Runner, ledger: Path) -> None:
    flags = ("--window", "1970-01-02T00:00/1970-01-02T03:00", "--compare", "1970-01-01T10:00/1970-01-01T20:00")
    found = [run("report", "--ledger", ledger, *flags, "--output", each) for each in ("table", "csv")]
    equal = run("report", "--ledger", ledger, "--window", "3h", "--compare", "previous", "--output", "csv")

    note = "Compares 3.0 h with 10.0 h: the change of quantity includes that."
    assert (note in found[0].out, found[0].err, found[1].err) == (True, "", f"gputally: {note}\n")
    assert equal.err == ""


@pytest.mark.parametrize(
    "question",
    [
        ("--window", "today"),
        ("--window", "yesterday", "--by", "job"),
        ("--window", "7h", "--by", "hour"),
        ("--window", "all", "--by", "pod"),
        ("--window", "1970-01-01T20:00/", "--compare", "previous"),
        ("--window", "all", "--waterfall"),
        ("--preset", "team", "--window", "all"),
        ("--window", "month", "--unallocated"),
        ("--window", "today", "--output", "focus"),
        ("--window", "today", "--output", "csv"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_with_a_cut_off_a_later_ledger_answers_as_it_did_then(
    run: Runner, ledger: Path, tmp_path: Path, question: tuple[str, ...], zone: str
) -> None:
    """The ledger of the fixture, and the same one nine hours later."""
    flags = (*question, "--time-zone", zone, *(() if "--output" in question else ("--output", "json")))
    then = run("report", "--ledger", ledger, *flags)
    later = tmp_path / "later.db"
    shutil.copy(ledger, later)
    with SqliteLedger(later) as writer:
        writer.write(step(pod("z", segment(ACCOUNTED, None), end_us=None, end_by=None, gap=None), at=2 * ACCOUNTED))

    assert (then.status, bool(then.out)) == (0, True)
    assert run("report", "--ledger", later, *flags).out != then.out or "yesterday" in question
    assert run("report", "--ledger", later, *flags, "--cut-off", "1970-01-02T09:00:01Z").out == then.out


@pytest.fixture(scope="module")
def shared_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("shared") / "l.db")


@given(
    cut_off_s=st.integers(3600, ACCOUNTED),
    window=st.sampled_from(["all", "today", "week", "7h", "1970-01-01T00:30/"]),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu"]),
)
def test_all_tables_of_a_page_say_the_same_at_any_cut_off(
    shared_ledger: Path, cut_off_s: int, window: str, zone: str
) -> None:
    question = Report(
        window=window,
        time_zone=zone,
        compare="1970-01-01T00:20Z/1970-01-01T00:30Z",
        waterfall=True,
        decimals=2,
        output="json",
        cut_off=f"{to_datetime(cut_off_s * 10**6):%Y-%m-%dT%H:%M:%SZ}",
        page=True,
    )
    with redirect_stdout(io.StringIO()) as out:
        try:
            report(question, LedgerFiles(str(shared_ledger)))
        except InvalidQuestion:
            reject()  # the period has no accounted time yet
    page = json.loads(out.getvalue(), parse_float=Decimal)

    assert {to_us(datetime.fromisoformat(each["cut_off"])) for each in page.values()} == {cut_off_s * 10**6}
    [total] = page["bill"]["totals"]
    for table in ("bill", "days"):
        assert sum(row["cost"] for row in page[table]["rows"]) == total["cost"]
        assert sum(row["gpu_hours"] for row in page[table]["rows"]) == total["gpu_hours"]
    assert [each["after"] for each in page["change"]["totals"]] == [total["cost"]]
    assert [each["billed"] for each in page["waterfall"]["totals"]] == [total["cost"]]


def test_the_heading_names_the_cut_off_of_a_period_that_is_over(run: Runner, ledger: Path) -> None:
    over, current = (run("report", "--ledger", ledger, "--window", each).out for each in ("yesterday", "today"))

    assert over.startswith(
        "GPU cost from 1970-01-01 00:16:40 to 1970-01-02 00:00:00 UTC, cut-off 1970-01-02 09:00:01 UTC\n"
    )
    assert current.startswith("GPU cost from 1970-01-02 00:00:00 to 1970-01-02 09:00:01 UTC\n")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("noon", "'noon' is not a time; use one such as 2026-10-15T06:00"),
        ("0001-01-01T00:00+14:00", "the ledger accounts 1970-01-01 00:16:40 to "),
        ("1970-01-02T10:00", "the ledger accounts 1970-01-01 00:16:40 to 1970-01-02 09:00:01 UTC, not "),
        ("1970-01-01", "the ledger accounts 1970-01-01 00:16:40 to "),
    ],
)
def test_a_cut_off_is_a_time_that_the_ledger_accounts(run: Runner, ledger: Path, text: str, problem: str) -> None:
    found = run("report", "--ledger", ledger, "--cut-off", text)

    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(f"gputally: --cut-off: {problem}")


def test_a_snapshot_shows_one_moment_to_all_its_reads(ledger: Path) -> None:
    with SqliteLedger(ledger) as writer, reading_once(str(ledger), is_snapshot=True) as snapshot:
        before = snapshot.state()
        writer.write(step(at=2 * ACCOUNTED))
        with reading_once(str(ledger)) as reader:
            assert reader.state().accounted_us > before.accounted_us
        assert snapshot.state() == before


def test_jobs_without_duration_are_in_no_row_but_in_the_view_of_allocations(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        lived, died = pod("a", segment(1000, 2000), job="lived"), pod("b", segment(1500, 1500), job="died")
        ledger.write(step(lived, died, at=ACCOUNTED))
    sql = "SELECT job FROM allocations ORDER BY job"

    found = json.loads(run("report", "--ledger", path, "--window", "all", "--by", "job", "--output", "json").out)

    assert ([row["job"] for row in found["rows"]], found["totals"][0]["jobs"], found["totals"][0]["pods"]) == (
        ["lived"],
        1,
        1,
    )
    assert run("ledger", "query", "--ledger", path, "--output", "csv", sql).out.split() == ["job", "died", "lived"]


def test_html_shows_hostile_names_as_text(run: Runner, tmp_path: Path) -> None:
    path, name = tmp_path / "l.db", "<script>alert('&')</script>"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        ledger.write(step(pod("a", segment(1000, 2000, tenant=name)), at=ACCOUNTED))

    shown = run("report", "--ledger", path, "--window", "all", "--output", "html", "--where", "tenant=<*").out

    assert "<script" not in shown
    assert "<td>&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;</td>" in shown
    assert ", tenant &lt;*</p>" in shown


@pytest.mark.parametrize(
    "question",
    [
        ("report",),
        ("report", "--preset", "team"),
        ("report", "--compare", "1970-01-01"),
        ("report", "--waterfall"),
        ("report", "--unallocated", "even"),
        ("waits",),
    ],
)
@pytest.mark.parametrize("decimals", [None, 3])
def test_columns_of_json_have_the_decimals_that_docs_say(
    run: Runner, ledger: Path, question: tuple[str, ...], decimals: int | None
) -> None:
    """Amounts have six or as many as chosen; percentages and mean seconds have one."""
    flags = ("--ledger", ledger, "--window", "1970-01-02", "--output", "json")
    out = run(*question, *flags, *(() if decimals is None else ("--decimals", str(decimals)))).out
    document = json.loads(out, parse_float=Decimal)

    rows = [
        *document["rows"],
        *document["totals"],
        *(job for row in document["rows"] for job in row.get("top_jobs", ())),
    ]
    found = {(name, _decimals_of(value)) for row in rows for name, value in row.items() if isinstance(value, Decimal)}
    assert found == {(name, 1 if name in ONE_DECIMAL else 6 if decimals is None else decimals) for name, _ in found}
    assert question == ("waits",) or found


ONE_DECIMAL = ("share", "utilisation", "mean_wait_seconds")


def _decimals_of(value: Decimal) -> int:
    return -int(value.as_tuple().exponent)


def test_csv_adds_up_to_the_total_of_json(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--by", "node", "--window", "all", "--output")
    rows = list(csv.DictReader(io.StringIO(run("report", *flags, "csv").out)))
    [total] = json.loads(run("report", *flags, "json").out, parse_float=Decimal)["totals"]

    for measure in ("gpu_hours", "cost", "unpriced", "starting", "measured", "used", "idle", "idle_cost", "energy_kwh"):
        assert sum(Decimal(row[measure]) for row in rows) == total[measure]


def test_hours_of_use_are_those_of_the_time_zone(run: Runner, ledger: Path) -> None:
    """Kathmandu was 5 hours and 30 minutes ahead of UTC in 1970."""
    flags = ("--ledger", ledger, "--by", "hour_of_day", "--where", "pod=pod-a", "--window", "all", "--output", "json")
    rows = json.loads(run("report", *flags, "--time-zone", "Asia/Kathmandu").out)["rows"]

    assert [(row["hour_of_day"], row["gpu_hours"], row["measured"]) for row in rows] == [
        ("04:00", 0.5, 0.0),
        ("05:00", 1.0, 0.5),
        ("06:00", 0.5, 0.5),
    ]


def test_filters_of_time_select_parts_of_a_period(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--window", "all", "--hours", "morning=Fri 0-3", "--output", "csv")
    by_day = run("report", *flags, "--by", "day,hours").out.splitlines()
    blue = run("report", *flags, "--where", "hours=morning", "--where", "tenant=blue").out.splitlines()

    found = [line.split(",")[:3] for line in by_day[1:]]
    assert found == [
        ["1970-01-01", "other", "22.722222"],
        ["1970-01-02", "morning", "7.333333"],
        ["1970-01-02", "other", "10.000278"],
    ]
    assert [line.split(",")[:2] for line in blue[1:]] == [["blue", "3.000000"]]


def test_used_and_idle_time_is_that_of_the_agents(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--by", "tenant", "--window", "today", "--output", "json")
    found = {row["tenant"]: row for row in json.loads(run("report", *flags).out)["rows"]}

    assert [found["red"][name] for name in ("measured", "used", "idle")] == [2.0, 0.583333, 1.416667]
    assert found["red"]["utilisation"] == 29.2
    assert found["red"]["energy_kwh"] == 0.25
    assert found["blue"]["idle_cost"] == pytest.approx(0.5 * 0.4)
    assert found["red"]["idle_cost"] == pytest.approx((1 - 0.583333) * float(PRICE.per_gpu_hour), abs=1e-5)


def test_filters_apply_together_and_may_have_wildcards(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--by", "pod", "--window", "all", "--output", "json")
    found = json.loads(run("report", *flags, "--where", "tenant=r*,gone", "--where", "job=train").out)

    assert {row["pod"] for row in found["rows"]} == {"pod-a", "pod-c", "pod-d"}
    assert found["where"] == {"tenant": ["r*", "gone"], "job": ["train"]}


def test_days_are_those_of_the_time_zone(run: Runner, ledger: Path) -> None:
    flags = ("--ledger", ledger, "--window", "1970-01-02", "--time-zone", "Asia/Tokyo", "--output", "json")

    assert json.loads(run("report", *flags).out)["window"] == {
        "from": "1970-01-02T00:00:00+09:00",
        "to": "1970-01-02T18:00:01+09:00",
    }


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--window", "foo"], "--window: 'foo' is not a period; use today"),
        (
            ["--window", "2026-10"],
            "--window: nothing is accounted in '2026-10': the ledger accounts 1970-01-01 00:16:40",
        ),
        (["--window", "all", "--compare", "previous"], "--compare: nothing is accounted in 'previous'"),
        (["--window", "today", "--compare", "x"], "--compare: 'x' is not a period"),
        (
            ["--time-zone", "Europe/Atlantis"],
            "--time-zone: unknown time zone 'Europe/Atlantis'; use a name such as UTC",
        ),
        (["--time-zone", "/etc/passwd"], "--time-zone: unknown time zone '/etc/passwd'"),
    ],
)
def test_wrong_periods_and_zones_are_explained(run: Runner, ledger: Path, flags: list[str], message: str) -> None:
    found = run("report", "--ledger", ledger, *flags)

    assert (found.status, found.out) == (2, "")
    assert message in found.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--by", "team"], "'team' is not valid; use tier, tenant"),
        (["--hours", "Mon-Fri"], "'Mon-Fri' is not valid; use [NAME=]DAYS FROM-TO"),
        (["--where", "tenant"], "'tenant' is not valid; use COLUMN=VALUE"),
        (["--where", "team=red"], "'team=red' is not valid; use COLUMN=VALUE"),
        (["--top", "0"], "'0' is not valid; use a number from 1"),
    ],
)
def test_wrong_flags_are_explained(
    run: Runner, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("report", *flags)

    assert message in capsys.readouterr().err


def test_a_report_leaves_nothing_beside_a_copy(run: Runner, ledger: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    shutil.copy(ledger, folder / "l.db")

    assert run("report", "--ledger", folder / "l.db", "--window", "all").status == 0
    assert names(folder) == {"l.db"}


@pytest.mark.parametrize("other", [("--compare", "previous"), ("--output", "focus")])
def test_unallocated_capacity_is_of_one_bill_alone(run: Runner, ledger: Path, other: tuple[str, str]) -> None:
    result = run("report", "--ledger", str(ledger), "--window", "all", "--unallocated", *other)

    assert (result.status, "--unallocated: cannot be combined with --" in result.err) == (2, True)
