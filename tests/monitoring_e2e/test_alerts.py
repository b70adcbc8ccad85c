"""Which notifications are sent, and when: from a pending pod to the webhook, in real time."""

import logging
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.monitoring_e2e.day import SCRAPE_S, Day
from tests.monitoring_e2e.notify import GROUP_INTERVAL_S, PAGER_WAIT_S, TICKETS_WAIT_S
from tests.prometheus.receiver import Notification

pytestmark = pytest.mark.e2e
logger = logging.getLogger(__name__)

PENDING, RATE = "InferencePodsPending", "HighPreemptionRate"
PAGE_AFTER_S = 120
RATE_FOR_S = 300
CHAIN_S = 2 * SCRAPE_S + 3
"""A scrape, an evaluation a second later, and overhead of Prometheus, Alertmanager and the machine."""
PREEMPTING_S = 5
"""From scaling up until five pods are preempted, which take two seconds to stop."""


@pytest.fixture
def page(day: Day) -> Notification:
    """The first page."""
    return next(each for each in day.notifications if PENDING in each.names)


def test_inference_pending_for_two_minutes_pages(day: Day, page: Notification) -> None:
    waited = [day.paged - created for created in day.large_created.values()]

    logger.info("paged after %s", ", ".join(f"{each:.1f} s" for each in waited))
    assert page.receiver == "pager"
    assert page.status == "firing"
    assert min(waited) > PAGE_AFTER_S
    assert max(waited) < PAGE_AFTER_S + CHAIN_S + PAGER_WAIT_S


def test_pending_pods_of_two_tenants_and_tiers_are_one_page(day: Day, page: Notification) -> None:
    labels = [alert["labels"] for alert in page.alerts]
    assert {(each["tier"], each["tenant"]) for each in labels} == day.large_created.keys()

    firing = [each for each in day.notifications if PENDING in each.names and each.status == "firing"]
    assert firing == [page]


def test_a_page_has_summary_description_and_links(page: Notification) -> None:
    for alert in page.alerts:
        labels, texts = alert["labels"], alert["annotations"]
        assert texts["summary"] == "Inference pods wait for GPUs."
        assert f"tier {labels['tier']} of tenant {labels['tenant']} wait for GPUs (2 in all)" in texts["description"]
        assert "Of the cluster's GPUs 0 are free, 8 allocated." in texts["description"]
        assert texts["runbook_url"].endswith(f"/docs/runbooks/{PENDING}.md")
        dashboard = urlsplit(texts["dashboard_url"])
        assert dashboard.path == "/d/gputally-pending"
        chosen = {f"var-{name}": [labels[name]] for name in ("cluster", "tier", "tenant")}
        assert parse_qs(dashboard.query) == chosen | {"viewPanel": ["100"]}


def test_the_page_is_resolved_once_there_is_capacity(day: Day) -> None:
    """The resolution is sent within the group_interval."""
    ends = [each for each in day.notifications if PENDING in each.names and each.status == "resolved"]

    logger.info("resolved %.1f s after capacity was added", day.resolved - day.small_until)
    assert [each.receiver for each in ends] == ["pager"]
    assert len(ends[0].alerts) == len(day.large_created)
    assert day.small_until < day.resolved < day.small_until + CHAIN_S + GROUP_INTERVAL_S


def test_a_high_preemption_rate_makes_a_ticket_after_exactly_its_for_duration(day: Day) -> None:
    """The two replacements of the aggregator meanwhile do not restart the five minutes."""
    first = next(each for each in day.notifications if RATE in each.names)
    quiet = f'present_over_time(ALERTS{{alertname="{RATE}"}}[{day.preempted_from - day.began}s])'

    logger.info("ticket %.1f s after inference scaled up", day.warned - day.preempted_from)
    assert day.prometheus.query(quiet, at=day.preempted_from).series == ()
    assert first.receiver == "tickets"
    assert [alert["labels"]["victim_tier"] for alert in first.alerts] == ["training-low"]
    assert "Within 15m, 5 pods of tier training-low lost their GPUs" in first.alerts[0]["annotations"]["description"]
    assert RATE_FOR_S < day.warned - day.preempted_from < RATE_FOR_S + PREEMPTING_S + CHAIN_S + TICKETS_WAIT_S
