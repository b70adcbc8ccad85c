"""The progress of jobs in ledgers."""

from pathlib import Path

from gputally.accounting.jobs.progress import PodProgress
from gputally.ledger.joined import JoinedReader
from gputally.ledger.open_to_write import open_ledger
from gputally.ledger.protocol import Ledger, LedgerReader
from gputally.ledger.records import ReachedProgress, Window
from gputally.model.units import MICRO
from tests.contract.records import ALWAYS, pod, segment, step, us
from tests.contract.test_jobs import written

DAY = 86_400
JOB = ("ml", "Job", "train")


def stated(
    uid: str, value: int, *, at: int = 1200, unit: str = "epoch"
) -> dict[tuple[str, str, str, str], PodProgress]:
    return {(*JOB, uid): PodProgress(uid=uid, micro=value * MICRO, unit=unit, at_us=us(at))}


def found(value: int, *, unit: str = "epoch", is_whole: bool = True) -> ReachedProgress:
    return ReachedProgress(
        namespace="ml", job_kind="Job", job="train", micro=value * MICRO, unit=unit, is_whole=is_whole
    )


def test_a_job_has_the_highest_progress_of_its_pods_in_any_order(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(progress=stated("a", 3) | stated("b", 9, unit="step") | stated("c", 5)))
    ledger.write(step(progress=stated("a", 4)))

    assert reader.progress(ALWAYS) == [found(9, unit="step")]


def test_a_job_without_progress_has_none(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1000, 1100))))

    assert reader.progress(ALWAYS) == []


def test_a_job_is_whole_in_windows_from_before_its_first_binding(ledger: Ledger, reader: LedgerReader) -> None:
    first = pod("a", segment(1100, 1150), scheduled_us=us(1100))
    ledger.write(step(first, pod("b", segment(1200, 1300), scheduled_us=us(1200)), progress=stated("b", 2)))

    assert reader.progress(Window(us(1100), us(2000))) == [found(2)]
    assert reader.progress(Window(us(1101), us(2000))) == [found(2, is_whole=False)]


def test_progress_of_later_than_the_window_is_not_in_it(ledger: Ledger, reader: LedgerReader) -> None:
    ledger.write(step(pod("a", segment(1100, 1900), scheduled_us=us(1100)), progress=stated("a", 2, at=1500)))

    assert reader.progress(Window(us(1000), us(1499))) == []
    assert reader.progress(Window(us(1000), us(1500))) == [found(2)]


def test_progress_survives_the_roll_up_of_its_pods(ledger: Ledger, reader: LedgerReader) -> None:
    record = pod("a", segment(1100, 1900), scheduled_us=us(1100), end_us=us(1900), revision=us(1900))
    ledger.write(step(record, progress=stated("a", 2)))
    ledger.write(step(at=3 * DAY))
    assert max(ledger.roll_up(us(2 * DAY))) == 1

    assert reader.progress(Window(0, us(3 * DAY))) == [found(2)]
    assert reader.progress(Window(us(DAY), us(3 * DAY))) == [found(2, is_whole=False)]


def test_a_job_that_may_have_begun_among_imported_jobs_is_whole_only_in_all_of_the_time(tmp_path: Path) -> None:
    live_path, new = tmp_path / "live.db", pod("live", segment(1100, 1200), scheduled_us=us(1100))
    with (
        written(tmp_path / "history.db", [pod("old", segment(500, 900))], start=1000) as history,
        written(live_path, [new], start=1000) as live,
    ):
        with open_ledger(str(live_path)) as ledger:
            ledger.write(step(live=None, progress=stated("live", 2)))
        joined = JoinedReader(history=history, live=live)

        assert joined.progress(ALWAYS) == [found(2)]
        assert joined.progress(Window(us(1050), us(2000))) == [found(2, is_whole=False)]
