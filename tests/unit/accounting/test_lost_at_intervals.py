"""What would have been lost with checkpoints at other intervals."""

from dataclasses import replace

from msgspec.structs import replace as replace_struct

from gputally.accounting.totals.total import Total
from gputally.model.units import GPU_SECOND, US_PER_SECOND
from tests.unit.accounting.test_lost_work import ENDED, HOUR, LOW, MINUTE, REQUESTED, RUNNING, START, cluster, loss


def test_a_job_shows_what_it_would_have_lost_with_other_intervals() -> None:
    """Stopped 47 minutes after the full hour."""
    replay = cluster()
    at = REQUESTED + 47 * MINUTE
    replay.see(RUNNING, at=START)
    replay.lose(replace(ENDED, marked=at, deleted=at, finished=at), at=at + 1)
    replay.scrape(at + 20)

    intervals = {us // US_PER_SECOND // 60: amount // GPU_SECOND for us, amount in loss(replay).at_intervals}
    minutes = {5: 2, 10: 7, 15: 2, 30: 17, 60: 47}
    assert intervals == {every: 4 * lost * MINUTE for every, lost in minutes.items()}
    assert loss(replay).gpu_time == 4 * (6 * HOUR + 47 * MINUTE) * GPU_SECOND


def test_the_counters_have_what_preemptions_would_have_destroyed_at_other_intervals() -> None:
    replay = cluster()
    at = REQUESTED + 47 * MINUTE
    replay.see(RUNNING, at=START)
    replay.lose(replace(ENDED, marked=at, deleted=at, finished=at), at=at + 1)
    replay.scrape(at + 20)
    replay.restart()
    replay.scrape(at + 30)

    assert replay.gpu_seconds(at + 40, Total.LOST_AT_INTERVAL) == {
        (*LOW, "5m"): 4 * 2 * MINUTE,
        (*LOW, "10m"): 4 * 7 * MINUTE,
        (*LOW, "15m"): 4 * 2 * MINUTE,
        (*LOW, "30m"): 4 * 17 * MINUTE,
        (*LOW, "1h"): 4 * 47 * MINUTE,
    }


def test_the_intervals_are_configured_and_a_new_one_counts_from_its_first_preemption() -> None:
    """The scrapes of the replay check that no counter falls."""
    replay = cluster()
    at = REQUESTED + 47 * MINUTE
    replay.see(RUNNING, at=START)
    replay.lose(replace(ENDED, marked=at, deleted=at, finished=at), at=at + 1)
    replay.scrape(at + 20)
    replay.restart(rules=replace_struct(replay.rules, what_if_checkpoints_us=(90 * MINUTE * US_PER_SECOND,)))
    replay.scrape(at + 30)
    running, ended = (replace(form, name="second", uid="second") for form in (RUNNING, ENDED))
    replay.see(running, at=at + 40)
    replay.lose(replace(ended, marked=at + 60, deleted=at + 60, finished=at + 60), at=at + 61)
    replay.scrape(at + 100)

    found = replay.gpu_seconds(at + 110, Total.LOST_AT_INTERVAL)
    ran_us = at + 60 - START
    assert found[*LOW, "1h30m"] == 4 * (ran_us % (90 * MINUTE))
    assert found[*LOW, "10m"] == 4 * 7 * MINUTE
