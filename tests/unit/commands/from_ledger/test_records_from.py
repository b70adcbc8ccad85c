"""One rule for every list of the ledger: it says from when on it has records, and names filters that no record has."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gputally.ledger.records import IMPORTED
from tests.fakes.waits_ledger import waits_ledger
from tests.unit.commands.sample import Runner

LISTS = (
    (("report",), "allocations"),
    (("report", "--by", "job"), "allocations"),
    (("report", "--preset", "team"), "allocations"),
    (("report", "--waterfall"), "allocations"),
    (("report", "--compare", "all"), "allocations"),
    (("preemptions",), "preemptions and other disruptions"),
    (("preemptions", "--by", "job"), "preemptions and other disruptions"),
    (("waits",), "waits"),
)
PEOPLE = ("table", "markdown", "html")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """See `waits_ledger`; accounting started at 00:16:40."""
    return waits_ledger(tmp_path)


def set_meta(ledger: Path, **values: object) -> None:
    with closing(sqlite3.connect(ledger)) as connection, connection:
        for key, value in values.items():
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, str(value)))


def asked(run: Runner, ledger: Path, command: tuple[str, ...], *more: str, output: str) -> tuple[str, str]:
    found = run(*command, "--ledger", ledger, "--window", "all", "--output", output, *more)
    assert found.status == 0, found.err
    return found.out, found.err


@pytest.mark.parametrize(("command", "name"), LISTS)
def test_every_list_says_from_when_on_it_has_records(
    run: Runner, ledger: Path, command: tuple[str, ...], name: str
) -> None:
    since = f"Records of {name} exist from 1970-01-01 00:16:40 UTC on."
    for each in PEOPLE:
        assert since in asked(run, ledger, command, output=each)[0]
    assert json.loads(asked(run, ledger, command, output="json")[0])["records_from"] == "1970-01-01T00:16:40Z"
    assert asked(run, ledger, command, output="csv")[1] == ""


def test_a_list_of_records_that_began_later_says_so_in_every_format(run: Runner, ledger: Path) -> None:
    """Waits are accounted only where their explanation is on."""
    set_meta(ledger, waits_from_us=2 * 3600 * 10**6)

    since = "Records of waits exist from 1970-01-01 02:00:00 UTC on, later than the period begins."
    assert all(since in asked(run, ledger, ("waits",), output=each)[0] for each in PEOPLE)
    assert asked(run, ledger, ("waits",), output="csv")[1] == f"gputally: {since}\n"
    assert json.loads(asked(run, ledger, ("waits",), output="json")[0])["records_from"] == "1970-01-01T02:00:00Z"


def test_nothing_is_not_none_in_a_time_of_which_nothing_is_known(run: Runner, ledger: Path) -> None:
    set_meta(ledger, waits_from_us=10**15)

    text, _ = asked(run, ledger, ("waits",), "--where", "tier=no*", output="table")
    assert "not known" in text.splitlines()
    assert "none" not in text.splitlines()


@pytest.mark.parametrize(("command", "name"), LISTS[5:])
def test_imported_jobs_have_no_such_records(run: Runner, ledger: Path, command: tuple[str, ...], name: str) -> None:
    set_meta(ledger, cluster=IMPORTED)

    text, _ = asked(run, ledger, command, "--where", "tier=no*", output="table")
    assert "not known" in text.splitlines()
    assert f"The ledger has no records of {name} at present: imported jobs have none" in text
    assert json.loads(asked(run, ledger, command, output="json")[0])["records_from"] is None


@pytest.mark.parametrize("column", ["tenant", "tier", "namespace"])
@pytest.mark.parametrize("command", [command for command, _ in LISTS])
def test_a_misspelt_filter_is_named_in_every_list_and_format(
    run: Runner, ledger: Path, command: tuple[str, ...], column: str
) -> None:
    where = f"--where={column}=visoin"
    misspelt = f"No record has {column} visoin: check the spelling."

    for each in PEOPLE:
        assert misspelt in asked(run, ledger, command, where, output=each)[0]
    assert json.loads(asked(run, ledger, command, where, output="json")[0])["unmatched"] == [f"{column} visoin"]
    assert misspelt in asked(run, ledger, command, where, output="csv")[1]


@pytest.mark.parametrize("command", [command for command, _ in LISTS])
def test_a_name_that_exists_is_not_misspelt_if_there_is_nothing_of_it(
    run: Runner, ledger: Path, command: tuple[str, ...]
) -> None:
    flags = ("--where=tenant=red", "--where=reason=gated" if command == ("waits",) else "--where=tier=l*")

    document = json.loads(asked(run, ledger, command, *flags, output="json")[0])
    assert (document["rows"], document["unmatched"]) == ([], [])


def test_of_some_tenants_only_their_names_are_known(run: Runner, ledger: Path) -> None:
    others = ("--where=tenant=<blue>", "--where=tenant=red")
    names = ("--where=tenant=red", "--where=pod=pod-d")

    assert json.loads(asked(run, ledger, ("waits",), *others, output="json")[0])["unmatched"] == ["tenant <blue>"]
    text, _ = asked(run, ledger, ("waits",), *names, output="table")
    assert "No record of these tenants has pod pod-d: check the spelling." in text
    assert (
        "No record has pod pod-x: check the spelling."
        in asked(
            run,
            ledger,
            ("waits",),
            "--where=pod=pod-x,pod-a",
            "--where=tier=low",
            "--where=reason=gated",
            output="table",
        )[0]
    )
