import pytest

from labs.bench.document import tables
from labs.bench.figure import Figure, shown, spread, stated
from labs.bench.results import beside_peer

MACHINE = [Figure("machine.cores", 2, "cores"), Figure("machine.memory_gib", 24, "GiB")]


@pytest.mark.parametrize(
    ("value", "goal", "verdict"),
    [(10, "<= 10", "met"), (10.1, "<= 10", "missed"), (19_999, ">= 20000", "missed"), (5, "", "")],
)
def test_a_goal_is_met_up_to_its_limit(value: float, goal: str, verdict: str) -> None:
    assert Figure("scrape.ms@20000", value, "ms", goal).verdict == verdict


def test_a_goal_applies_only_to_its_size() -> None:
    assert [stated("<= 10", pods) for pods in (1000, 20_000, 50_000)] == ["", "<= 10", ""]


def test_the_spread_of_a_figure_keeps_its_size_at_the_end_of_the_name() -> None:
    figures = {figure.name: figure.value for figure in spread("scrape.ms@1000", [1, 2, 9], "ms")}

    assert figures == {"scrape.ms@1000": 2, "scrape.ms_p99@1000": pytest.approx(8.86), "scrape.ms_max@1000": 9}


def test_a_figure_is_compared_to_kube_state_metrics_at_the_same_size() -> None:
    figures = [Figure(f"scrape.ms@{pods}", 5, "ms") for pods in (1000, 20_000)]

    small, large, _ = beside_peer([*figures, Figure("peer.ksm_scrape_ms@20000", 450, "ms")])

    assert (small.peer, small.peer_value) == ("", None)
    assert (large.peer, large.peer_value) == ("kube-state-metrics", 450)


def test_the_page_shows_missed_goals_and_growth() -> None:
    values = {1000: 4.0, 20_000: 12.0}
    figures = [*MACHINE, *(Figure(f"scrape.ms@{pods}", ms, "ms", stated("<= 10", pods)) for pods, ms in values.items())]

    found = tables({figure.name: figure for figure in figures}, "2026-07-01")

    assert "| Scrape, median | 12 ms | ≤ 10 ms | **no** |  |" in found["goals"].splitlines()
    assert "| Scrape, median | 4 ms | 12 ms |" in found["growth"].splitlines()


@pytest.mark.parametrize(
    ("value", "text"), [(0.05678, "0.0568"), (12.345, "12.3"), (1234.5, "1,234"), (0, "0"), (99.96, "100")]
)
def test_a_value_is_shown_with_significant_digits(value: float, text: str) -> None:
    assert shown(value) == text
