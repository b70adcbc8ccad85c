"""What is published is what is in the ledger: the next process could not go on from more."""

from pathlib import Path

import pytest

from tests.fakes.bookkeeping import is_fleet_counter
from tests.fakes.desk import Desk, allocated
from tests.fakes.stream import stream

OBSERVATIONS = stream(3, 150)
HALF = len(OBSERVATIONS) // 2


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "ledger.db")


async def test_while_the_ledger_refuses_the_counters_stand_still_and_a_killed_process_is_never_ahead_of_the_next(
    desk: Desk,
) -> None:
    for end in (HALF, HALF + 1):
        desk.take(OBSERVATIONS[HALF - 1 : end])
        before = await desk.samples()
    desk.fill()
    desk.take(OBSERVATIONS[HALF + 1 :])
    refused = [await desk.samples() for _ in range(3)]
    desk.ledger.__exit__(None, None, None)  # the process dies; what waits is lost

    after_death = Desk(desk.ledger.path)
    after_death.time.now_us = desk.time.now_us
    following = await after_death.samples()

    counters = [name for name in before if name.startswith("gputally_") and is_fleet_counter(name)]
    for samples in refused:
        assert {name: samples[name] for name in counters} == {name: before[name] for name in counters}
    assert [name for name in counters if following[name] < before[name]] == []
    after_death.close()


async def test_a_process_that_starts_on_a_full_disk_shows_what_the_one_before_showed(desk: Desk) -> None:
    desk.take(OBSERVATIONS)
    await desk.samples()
    before = await desk.samples()
    desk.close()

    full = Desk(desk.ledger.path)
    full.time.now_us = desk.time.now_us + 10**9
    full.fill()
    full.take(stream(4, 150))
    shown = await full.samples()

    assert allocated(shown) == pytest.approx(allocated(before), rel=1e-9)
    full.make_room()
    later = await full.samples()
    assert full.pipeline.health.ledger.writable is False
    assert allocated(later) == allocated(shown)
    await full.pipeline.writer.flush()
    assert allocated(await full.samples()) > allocated(shown) + 1
    full.close()


async def test_a_series_that_came_while_the_ledger_refused_is_shown_as_0_from_then_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "ledger.db", zero_us=60_000_000)
    desk.fill()
    desk.take(OBSERVATIONS)
    for _ in range(5):
        desk.time.now_us += 30_000_000
        hidden = await desk.samples()
    desk.make_room()
    await desk.pipeline.writer.flush()
    shown = []
    for _ in range(3):
        shown.append(allocated(await desk.samples()))
        desk.time.now_us += 30_000_000

    assert allocated(hidden) == 0
    assert shown[:2] == [0, 0]
    assert shown[2] > 0
    desk.close()
