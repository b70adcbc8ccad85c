"""What would have been lost with checkpoints at other intervals."""

from dataclasses import replace

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
    assert intervals == {10: 4 * 7 * MINUTE, 30: 4 * 17 * MINUTE, 60: 4 * 47 * MINUTE}
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
        (*LOW, "10m"): 4 * 7 * MINUTE,
        (*LOW, "30m"): 4 * 17 * MINUTE,
        (*LOW, "1h"): 4 * 47 * MINUTE,
    }
