"""Runs every query of every dashboard after the whole scenario, as Grafana does."""

import pytest

from tests.monitoring_e2e.day import Day
from tests.monitoring_e2e.expected_empty import HOURLY, expected_empty
from tests.monitoring_e2e.panels import Asked, Boards

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def asked(day: Day, dashboards: Boards) -> list[Asked]:
    return list(dashboards.ask_all(day.prometheus, day.whole))


def test_every_query_succeeds(asked: list[Asked]) -> None:
    assert {each.key: each.frame.error for each in asked if each.frame.error} == {}


def test_only_the_expected_queries_have_no_data(asked: list[Asked], day: Day) -> None:
    empty = {each.key for each in asked if not each.has_data}

    assert empty - HOURLY == expected_empty(day.whole).keys()
