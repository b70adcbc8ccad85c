"""Reports note the pods that asked for GPUs which were not accounted."""

import json
from pathlib import Path

import pytest

from gputally.ledger.open import open_reader
from gputally.ledger.records import Window
from gputally.ledger.sqlite.reader import SqliteLedgerReader
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.unaccounted import Unaccounted, UnaccountedDay
from gputally.model.units import GPU, US_PER_DAY
from tests.contract.records import pod, segment, step
from tests.unit.commands.sample import CLUSTER, Runner

DAY = 86_400
DAYS = [
    UnaccountedDay(day="1970-01-01", reason=Unaccounted.CLAIM, pods=7, quantity=0),
    UnaccountedDay(day="1970-01-02", reason=Unaccounted.CLAIM, pods=1, quantity=0),
    UnaccountedDay(day="1970-01-02", reason=Unaccounted.NOT_OFFERED, pods=3, quantity=5 * GPU // 2),
    UnaccountedDay(day="1970-01-03", reason=Unaccounted.NOT_OFFERED, pods=2, quantity=4 * GPU),
]
CLAIMS = (
    "Not billed: up to {} at a time, because the devices are from a ResourceClaim, and claims are not read (claim)."
).format
OFFERS = (
    "Not billed: up to 3 pods at a time ({} GPUs), because the node has never offered all the GPUs that are requested "
    "(not_offered)."
).format
SECOND = (OFFERS("2.5"), CLAIMS("1 pod"))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A pod from the first to the third day, beside pods that are not accounted."""
    path = tmp_path / "l.db"
    with SqliteLedger(path) as ledger:
        ledger.bind(CLUSTER)
        documents = {("unaccounted-day", f"{each.day} {each.reason}"): each for each in DAYS}
        ledger.write(step(pod("a", segment(2000, 3 * DAY)), at=3 * DAY, documents=documents))
    return path


@pytest.mark.parametrize("output", ["table", "markdown", "html"])
@pytest.mark.parametrize("more", [(), ("--compare", "1970-01-01"), ("--preset", "team"), ("--waterfall",)])
def test_reports_for_people_have_a_sentence_for_each_reason(
    run: Runner, ledger: Path, output: str, more: tuple[str, ...]
) -> None:
    found = run("report", "--ledger", ledger, "--window", "1970-01-02", "--output", output, *more)

    assert found.status == 0, found.err
    assert [sentence for sentence in SECOND if sentence in found.out] == list(SECOND)
    assert found.out.count("Not billed") == 2


def test_the_most_of_all_days_count(run: Runner, ledger: Path) -> None:
    found = run("report", "--ledger", ledger, "--window", "all")

    assert CLAIMS("7 pods") in found.out
    assert OFFERS("4") in found.out


@pytest.mark.parametrize("output", ["csv", "focus"])
def test_beside_files_for_programs_they_are_on_standard_error(run: Runner, ledger: Path, output: str) -> None:
    found = run("report", "--ledger", ledger, "--window", "1970-01-02", "--output", output)

    assert "Not billed" not in found.out
    assert [line for line in found.err.splitlines() if "Not billed" in line] == [f"gputally: {each}" for each in SECOND]


def test_json_has_them_as_a_list(run: Runner, ledger: Path) -> None:
    found = run("report", "--ledger", ledger, "--window", "1970-01-02", "--output", "json")

    assert [(each["reason"], each["pods"], each["gpus"]) for each in json.loads(found.out)["unaccounted"]] == [
        ("not_offered", 3, 2.5),
        ("claim", 1, None),
    ]


def test_a_report_with_filters_has_none_as_these_pods_have_no_values(run: Runner, ledger: Path) -> None:
    arguments = ("report", "--ledger", ledger, "--window", "1970-01-02", "--where", "tenant=ml")

    assert "Not billed" not in run(*arguments).out
    assert json.loads(run(*arguments, "--output", "json").out)["unaccounted"] is None


@pytest.mark.parametrize("command", [("waits",), ("preemptions",), ("explain", "--where", "pod=a")])
def test_commands_that_do_not_show_them_do_not_read_them(
    run: Runner, ledger: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: object, window: Window) -> list[UnaccountedDay]:
        raise AssertionError(window)

    monkeypatch.setattr(SqliteLedgerReader, "unaccounted", read)

    assert run(*command, "--ledger", ledger, "--window", "1970-01-02").status == 0
    with pytest.raises(AssertionError):
        run("report", "--ledger", ledger, "--window", "1970-01-02")


def test_a_report_without_such_pods_has_no_note(run: Runner, tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "none.db") as none:
        none.bind(CLUSTER)
        none.write(step(pod("a", segment(2000, 3 * DAY)), at=3 * DAY))

    found = run("report", "--ledger", tmp_path / "none.db", "--window", "all")
    assert "Not billed" not in found.out + found.err


@pytest.mark.parametrize(
    ("start_us", "end_us", "days"),
    [
        (0, US_PER_DAY, 1),
        (US_PER_DAY - 1, US_PER_DAY, 1),
        (US_PER_DAY - 1, US_PER_DAY + 1, 3),
        (US_PER_DAY, 3 * US_PER_DAY, 3),
        (3 * US_PER_DAY, 9 * US_PER_DAY, 0),
    ],
)
def test_a_reader_has_the_days_that_overlap_the_window(ledger: Path, start_us: int, end_us: int, days: int) -> None:
    with open_reader(str(ledger)) as reader:
        assert len(reader.unaccounted(Window(start_us, end_us))) == days
