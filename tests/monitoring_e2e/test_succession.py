"""Another aggregator takes over on the same ledger at another address: values in Prometheus continue."""

from collections.abc import Iterable, Mapping

import pytest

from gputally.catalog.all import FLEET
from gputally.catalog.metric import MetricType
from hack.prometheus import Prometheus
from tests.monitoring_e2e import targets
from tests.monitoring_e2e.day import SCRAPE_S, Day, Succession, window
from tests.monitoring_e2e.deviation import deviations, overcount_at_end
from tests.monitoring_e2e.ledger import sums
from tests.monitoring_e2e.panels import Asked, Boards

pytestmark = pytest.mark.e2e

OURS = f'{{job="{targets.AGGREGATOR}"}}'
NAMES = {metric.name for metric in FLEET}
COUNTERS = [metric.name for metric in FLEET if metric.kind is MetricType.COUNTER]
TRUTH: Mapping[tuple[str, str], dict[tuple[str, ...], float]] = {
    ("fleet", "GPUs by state"): {("allocated",): 12, ("cordoned",): 1},
    ("tiers", "Allocated GPUs by tier"): {
        ("inference-critical",): 8,
        ("inference-standard",): 2,
        ("training-standard",): 2,
    },
    ("tenants", "Allocated GPUs by tenant"): {("search",): 2, ("serving",): 8, ("research",): 2},
}
LATE_S = 3 * SCRAPE_S
"""After this time both Prometheus servers have the same values."""
Shown = tuple[object, ...]
"""A series of a panel: its query, position and labels."""
LABELS = {"fleet": ("state",), "tiers": ("tier",), "tenants": ("tenant",)}


@pytest.fixture(params=["noticed", "unnoticed"])
def succession(request: pytest.FixtureRequest, day: Day) -> Succession:
    found: Succession = getattr(day, request.param)
    return found


def test_with_a_stable_instance_no_series_starts_or_ends(succession: Succession, day: Day) -> None:
    before, after = (series_of_the_fleet(day.prometheus, at=moment) for moment in succession)

    assert before
    assert after == before


def test_with_a_stable_instance_no_fleet_counter_resets(day: Day) -> None:
    lasting = f"{day.ended - day.began:.0f}s"
    resets = {name: day.prometheus.query(f"sum(resets({name}{OURS}[{lasting}]))", at=day.ended) for name in COUNTERS}

    assert {name: answer.value for name, answer in resets.items() if answer.series and answer.value} == {}


def test_gauges_are_correct_while_old_and_new_instances_are_visible(day: Day, dashboards: Boards) -> None:
    """The second Prometheus sees two different instances, and has not noticed that the old one ended."""
    assert day.ended - day.unnoticed.after > 60
    assert instances(day.by_address, at=day.ended) == 2
    for server, start in ((day.prometheus, day.noticed.after), (day.by_address, day.unnoticed.after)):
        for (board, panel), truth in TRUTH.items():
            frame = dashboards.ask(server, board, panel, window(start, day.ended))
            shown = {
                tuple(each.labels[name] for name in LABELS[board]): {value for _, value in each.points}
                for each in frame.series
                if any(value for _, value in each.points)
            }
            assert shown == {labels: {value} for labels, value in truth.items()}


def test_no_panel_counts_old_and_new_instances_twice(succession: Succession, day: Day, dashboards: Boards) -> None:
    """For panels not split by instance, from just before the succession until a moment after it.

    An age may restart between the scrapes of the two servers; it must not exceed the age that the first one had.
    A server that scrapes a new process early sees its first counts as a change, so changes are only compared once
    they have settled. The server that scrapes first sees a change first.
    """
    settled = day.ended - LATE_S
    final = last_values(dashboards.ask_all(day.prometheus, window(succession.before - 5, day.ended)))
    before = window(succession.before - 5, succession.before)
    started = starts(last_values(dashboards.ask_all(day.prometheus, before)), succession.before)
    soon = range(int(succession.after), int(succession.after) + 7, LATE_S)
    for moment in (*soon, settled, day.ended):
        shown = window(succession.before - 5, moment)
        single = last_values(dashboards.ask_all(day.prometheus, shown))
        both = last_values(dashboards.ask_all(day.by_address, shown))
        assert len(both) > 200
        new = starts(single, moment)
        ages = {key: moment - min(since, new.get(key, since)) + SCRAPE_S for key, since in (new | started).items()}
        most = {key: 1.5 * value + 0.01 for key, value in single.items()} | ages
        most |= {key: max(most.get(key, 0), 1.5 * value + 0.01) for key, value in final.items() if is_change(key)}
        compared = {key: both[key] for key in both if moment == settled or not is_change(key)}
        compared = {key: value for key, value in compared.items() if not has_earlier_period(key)}
        assert {key: (value, most.get(key)) for key, value in compared.items() if value > most.get(key, 0.01)} == {}
        started |= new


def test_an_increase_across_both_instances_misses_only_the_time_between_them(day: Day, dashboards: Boards) -> None:
    shown = window(day.compared_from, day.ended)
    gap_s = sum(each.after - each.before + SCRAPE_S for each in (day.noticed, day.unnoticed))

    hours = dashboards.values(day.by_address, "tenants", "Tenants", shown, column="GPU-hours", by=("tenant",))
    in_ledger = sums(day.ledger.segments(shown.start, shown.end), "tenant")

    in_seconds = {name: value * 3600 for (name,), value in hours.items()}
    overcount = overcount_at_end(day.prometheus, shown)
    assert deviations(in_seconds, in_ledger, what="by address, GPU-seconds", overcount=overcount, gap_s=gap_s) == []


def series_of_the_fleet(api: Prometheus, *, at: float) -> set[frozenset[tuple[str, str]]]:
    """Names and labels of fleet series, without the process's own series."""
    found = api.query(f'{{__name__=~"gputally_.+", job="{targets.AGGREGATOR}"}}', at=at).series
    return {frozenset(each.labels.items()) for each in found if base(each.labels["__name__"]) in NAMES}


def base(name: str) -> str:
    """The metric name of a series, without a histogram suffix."""
    return next((name.removesuffix(end) for end in ("_bucket", "_sum", "_count") if name.endswith(end)), name)


def starts(shown: Mapping[Shown, float], moment: float) -> dict[Shown, float]:
    """When what has an age started, by its age at the moment."""
    return {key: moment - value for key, value in shown.items() if is_age(key)}


def is_age(shown: Shown) -> bool:
    return "time() - " in str(shown[0])


def is_change(shown: Shown) -> bool:
    return "rate(" in str(shown[0]) or "increase(" in str(shown[0])


def has_earlier_period(shown: Shown) -> bool:
    """The two servers do not have the same past."""
    return " offset " in str(shown[0])


def instances(api: Prometheus, *, at: float) -> float:
    return api.query(f"count(count by (instance) (gputally_pods{OURS}))", at=at).value


def last_values(asked: Iterable[Asked]) -> dict[Shown, float]:
    return {
        (each.frame.target.expr, *each.key, *sorted(series.labels.items())): series.last
        for each in asked
        for series in each.frame.series
        if "instance" not in series.labels
    }
