"""From when on a ledger has records of each kind, on all back-ends: before, "none" means that nothing is known."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gputally.ledger.joined import JoinedReader
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import IMPORTED, Records
from gputally.model.placement.wait import WaitRow
from gputally.model.units import US_PER_DAY
from tests.contract.conftest import BackEnd, sqlite
from tests.contract.records import DISRUPTION, OPENED_S, WAIT, step, us

FORGET = "DELETE FROM meta WHERE key IN ('waits_from_us', 'disruptions_from_us')"
"""Makes a ledger one that an older version wrote."""


def starts(reader: LedgerReader) -> dict[Records, int | None]:
    return {each: reader.state().records_from_us(each) for each in Records}


def waits(*from_s: int) -> dict[tuple[str, int], WaitRow | None]:
    found = (replace(WAIT, from_us=us(each), to_us=us(each) + 1) for each in from_s)
    return {("a", each.from_us): WaitRow(uid="a", namespace="ml", name="pod-a", wait=each) for each in found}


def test_a_new_ledger_has_all_records_from_its_accounting_start_on(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(at=OPENED_S + 500))
    ledger.write(step(at=OPENED_S + 600, waits=waits(OPENED_S + 550)))

    assert set(starts(reader).values()) == {us(OPENED_S)}


def test_records_of_an_older_ledger_begin_with_its_upgrade_unless_it_has_some(back_end: BackEnd) -> None:
    with back_end.open() as ledger:
        ledger.write(step(at=2000, disruptions={"v": replace(DISRUPTION, decided_us=us(1800))}))
    back_end.tamper(FORGET)
    with back_end.read() as reader:
        assert starts(reader) == {
            Records.ALLOCATIONS: us(OPENED_S),
            Records.PODS: us(OPENED_S),
            Records.DISRUPTIONS: us(1800),
            Records.WAITS: us(2000),
        }
    with back_end.open() as ledger, back_end.read() as reader:
        ledger.write(step(at=3000, waits=waits(2990)))
        ledger.write(step(at=4000, waits=waits(3990)))

        assert starts(reader) == {
            Records.ALLOCATIONS: us(OPENED_S),
            Records.PODS: us(OPENED_S),
            Records.DISRUPTIONS: us(1800),
            Records.WAITS: us(3000),
        }


def test_waits_begin_anew_after_a_time_without_the_feature(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(at=2000, waits=waits(1900)))
    ledger.write(replace(step(at=3000), has_waits=False))
    assert starts(reader)[Records.WAITS] is None

    ledger.write(step(at=4000))
    ledger.write(step(at=5000))
    assert starts(reader)[Records.WAITS] == us(4000)
    assert starts(reader)[Records.DISRUPTIONS] == us(OPENED_S)


def test_the_retention_deletes_waits_and_no_preemptions(back_end: BackEnd) -> None:
    with back_end.open() as ledger, back_end.read() as reader:
        ledger.write(step(at=2000, waits=waits(1900)))
        back_end.tamper(f"INSERT INTO meta VALUES ('detail_start_us', {3 * US_PER_DAY})")

        assert starts(reader)[Records.WAITS] == starts(reader)[Records.PODS] == 3 * US_PER_DAY
        assert starts(reader)[Records.DISRUPTIONS] == us(OPENED_S)


@pytest.mark.parametrize("records", [Records.DISRUPTIONS, Records.WAITS])
def test_imported_jobs_have_neither_waits_nor_preemptions(back_end: BackEnd, records: Records) -> None:
    with back_end.open() as ledger:
        ledger.bind(IMPORTED)
        ledger.write(step(at=2000))
    with back_end.read() as reader:
        assert reader.state().records_from_us(records) is None
        assert reader.state().records_from_us(Records.ALLOCATIONS) == us(OPENED_S)


def test_of_a_history_and_a_ledger_the_ledger_has_the_waits(back_end: BackEnd, tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    other = sqlite(tmp_path / "history")
    with other.open() as history:
        history.write(replace(step(at=50), accounting_start_us=us(10)))
    with back_end.open() as ledger:
        ledger.write(step(at=2000))
    with other.read() as before, back_end.read() as live:
        assert starts(JoinedReader(history=before, live=live)) == {
            Records.ALLOCATIONS: us(10),
            Records.PODS: us(10),
            Records.DISRUPTIONS: us(OPENED_S),
            Records.WAITS: us(OPENED_S),
        }
