"""Scrapes of kube-state-metrics: what one does not show had ended by then."""

import pytest

from gputally.importing.kube_state.prometheus_api import SampledSeries
from gputally.importing.kube_state.scrapes import Scrapes, ScrapeTarget

OLD, NEW = ScrapeTarget("ksm", "old"), ScrapeTarget("ksm", "new")


def up(target: ScrapeTarget, *times: float, failed: tuple[float, ...] = ()) -> SampledSeries:
    samples = sorted([*((at, "1") for at in times), *((at, "0") for at in failed)])
    return SampledSeries(metric=target._asdict(), values=samples)


def test_a_failed_scrape_shows_nothing() -> None:
    scrapes = Scrapes([up(OLD, 10, 40, 100, failed=(70,))], [OLD])

    assert scrapes.next_after([OLD], 40) == 100
    assert scrapes.next_after([OLD], 100) is None
    assert (scrapes.first_s, scrapes.last_s, scrapes.interval_s) == (10, 100, 45)


def test_after_a_replacement_the_scrapes_of_the_new_target_count() -> None:
    scrapes = Scrapes([up(OLD, 10, 40), up(NEW, 35, 65, 95, 600)], [OLD, NEW])

    assert scrapes.next_after([OLD], 10) == 40
    assert scrapes.next_after([OLD], 40) == 65
    assert scrapes.all_seen_s == 600


def test_the_first_scrape_of_a_new_target_shows_no_end() -> None:
    """kube-state-metrics may be scraped while it still lists what is there."""
    scrapes = Scrapes([up(OLD, 10, 40), up(NEW, 65, 95, 125)], [OLD, NEW])

    assert scrapes.next_after([OLD], 40) == 95
    assert scrapes.next_after([OLD, NEW], 40) == 95
    assert scrapes.next_after([OLD, NEW], 65) == 95


def test_the_first_scrapes_of_a_new_target_by_both_servers_show_no_end() -> None:
    pair = [up(NEW, 65, 95, 125), up(NEW, 66, 96, 126)]

    assert Scrapes([up(OLD, 10, 40), *pair], [OLD, NEW]).next_after([OLD], 40) == 95


def test_a_new_target_with_a_single_scrape_ends_nothing() -> None:
    scrapes = Scrapes([up(OLD, 10, 40), up(NEW, 600)], [OLD, NEW])

    assert scrapes.next_after([OLD], 40) is None
    assert (scrapes.all_seen_s, scrapes.last_s) == (40, 600)


def test_two_targets_were_both_scraped_by_the_earlier_of_their_last_scrapes() -> None:
    scrapes = Scrapes([up(OLD, 10, 40), up(NEW, 25, 55)], [OLD, NEW])

    assert (scrapes.all_seen_s, scrapes.last_s) == (40, 55)


@pytest.mark.parametrize("targets", [[], [NEW]])
def test_other_targets_of_the_job_are_ignored(targets: list[ScrapeTarget]) -> None:
    assert not Scrapes([up(OLD, 10)], targets)
