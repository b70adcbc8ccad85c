import json
from collections.abc import Callable
from pathlib import Path

from gputally.ledger.sqlite.sqlite_ledger import SqliteLedger
from tests.unit.maintenance.conftest import CLUSTER, PODS, Ran, contents, revised

Run = Callable[..., Ran]


def document(run: Run, ledger: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(run("ledger", "info", "--ledger", ledger, "--output", "json").out)
    return found


def test_the_document_has_the_facts_of_the_file(run: Run, ledger: Path) -> None:
    shown = document(run, ledger)

    assert shown["version"] == 1
    assert shown["cluster"] == CLUSTER
    assert shown["file_bytes"] == ledger.stat().st_size
    assert shown["accounting_start_us"] == 1_000_000_000
    assert shown["accounted_us"] == 5_000_000_000
    assert shown["rows"] == {
        "pods": PODS,
        "open_allocations": 0,
        "segments": PODS,
        "preemptions": 0,
        "usage_hours": 0,
        "capacity_changes": 0,
    }


def test_it_says_whether_a_process_writes_the_ledger(run: Run, ledger: Path) -> None:
    assert document(run, ledger)["is_open"] is False
    with SqliteLedger(ledger) as writer:
        writer.write(revised(2))
        assert document(run, ledger)["is_open"] is True
        assert document(run, ledger)["wal_bytes"] != 0
    assert document(run, ledger)["is_open"] is False


def test_reading_facts_creates_and_changes_nothing(run: Run, ledger: Path) -> None:
    Path(f"{ledger}.lock").unlink()
    before = contents(ledger.parent)

    assert run("ledger", "info", "--ledger", ledger).status == 0
    assert run("ledger", "check", "--ledger", ledger).status == 0

    assert contents(ledger.parent) == before


def test_the_table_reads_like_a_sentence_each(run: Run, ledger: Path) -> None:
    shown = run("ledger", "info", "--ledger", f"sqlite:///{ledger}").out

    assert "accounting since          1970-01-01 00:16:40 UTC\n" in shown
    assert "accounted until           1970-01-01 01:23:20 UTC, " in shown
    assert "segments                  20\n" in shown
    assert "backups beside it         none\n" in shown


def test_a_missing_ledger_is_named(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "nope.db"

    assert run("ledger", "info", "--ledger", missing) == Ran(
        4, "", f"gputally: {missing}: no such file; use the file of --ledger of the aggregator\n"
    )


def test_damage_is_found_with_status_4(run: Run, ledger: Path) -> None:
    assert run("ledger", "check", "--ledger", ledger).status == 0
    with ledger.open("r+b") as file:
        file.seek(ledger.stat().st_size - 8192)
        file.write(b"garbage!" * 1024)

    found = run("ledger", "check", "--ledger", ledger)

    assert found.status == 4
    assert "damaged" in found.err or "corrupt" in found.err
