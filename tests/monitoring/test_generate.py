import json
from pathlib import Path

import pytest

import alerts
import dashboards
from monitoring.board import Board, Row, rendered
from monitoring.config import ConfigInvalid, read
from monitoring.generate import boards, generated
from monitoring.link import TIME_RANGE, AggregatorLink, Link
from monitoring.panel import Column, Look, stat, table
from monitoring.selector import Selectors
from monitoring.unit import COUNT

NEW_BOARD = """
from monitoring.board import Board, Row, Variable
from monitoring.panel import Look, Query, stat, timeseries
BOARD = Board(
    name="gangs", title="Gangs", description="Of gangs.", variables=(Variable("tier", "Tier", "up"),),
    rows=(Row("One", tuple(stat(Look(f"s{n}", "d"), Query("up")) for n in range(7))), Row("Two", (
        timeseries(Look("t", "d"), Query("up")),))),
)
"""
NEW_GROUP = """
from monitoring.rule import Alert, Group
GROUP = Group(name="gangs", alerts=(Alert(
    name="GputallyGpuLost", expression="up", summary="s", description="d", dashboard="gangs"),))
"""


@pytest.fixture
def gangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The generated files after a new dashboard and a new alert group are added."""
    for package, text in ((dashboards, NEW_BOARD), (alerts, NEW_GROUP)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / "gangs.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    return dict(generated(read()))


def test_a_new_dashboard_and_new_alerts_each_need_only_a_new_file(gangs: dict[str, str]) -> None:
    new = {name for name in gangs if "gangs" in name}

    assert new == {
        "dashboards/generated/gangs.json",
        "alerts/generated/rules/gangs.yaml",
        "alerts/generated/prometheusrules/gangs.yaml",
    }


def test_panels_are_placed_in_order_and_rows_start_below_them(gangs: dict[str, str]) -> None:
    places = {
        panel["title"]: (panel["gridPos"]["x"], panel["gridPos"]["y"], panel["id"])
        for panel in json.loads(gangs["dashboards/generated/gangs.json"])["panels"]
    }

    assert places == {
        "One": (0, 0, 1),
        **{f"s{number}": (4 * number, 1, number + 2) for number in range(6)},
        "s6": (0, 5, 8),
        "Two": (0, 9, 9),
        "t": (0, 10, 10),
    }


def test_generation_is_deterministic() -> None:
    assert generated(read()) == generated(read())


def test_dashboards_show_the_thresholds_of_the_alerts(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("objective: {seconds: 300, share: 0.9}\nalerts: {InferencePodsPending: {seconds: 77}}")

    panels = {
        panel["title"]: panel
        for panel in json.loads(generated(read(mine))["dashboards/generated/pending.json"])["panels"]
    }

    oldest = panels["Oldest inference pod"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert oldest == [{"color": "green", "value": None}, {"color": "red", "value": 77}]
    assert 'le=~"300([.]0)?"' in panels["Late inference (> 300 s)"]["targets"][0]["expr"]
    late = panels["Late inference (> 300 s) by tier"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert late[1] == {"color": "red", "value": 0.1}


def test_a_threshold_missing_in_the_alerts_is_reported() -> None:
    board = Board(
        name="x",
        title="X",
        description="",
        variables=(),
        rows=(Row("r", (stat(Look("<GputallyGpuLost.secs>", "d")),)),),
    )

    with pytest.raises(ConfigInvalid, match=r"GputallyGpuLost\.secs: missing; a dashboard shows it"):
        rendered(board, read())


def test_dashboards_keep_their_uids() -> None:
    assert {json.loads(text)["uid"] for name, text in generated(read()).items() if name.endswith(".json")} == {
        "gputally-agents",
        "gputally-condition",
        "gputally-exporter",
        "gputally-fleet",
        "gputally-jobs",
        "gputally-node",
        "gputally-pending",
        "gputally-tenants",
        "gputally-preemption",
        "gputally-tiers",
    }
    assert all(name == board.name for name, board in boards().items())


def test_a_selector_uses_the_variables_that_the_series_has_labels_for() -> None:
    select = Selectors("cluster", "tier", "pool")

    assert select("gputally_pending_pods") == 'gputally_pending_pods{cluster=~"$cluster", tier=~"$tier"}'
    assert select("gputally_capacity_gpus", 'state="free"') == (
        'gputally_capacity_gpus{cluster=~"$cluster", pool=~"$pool", state="free"}'
    )
    assert select.now("gputally_pending_pods") == (
        'max by (cluster, tier, tenant) (gputally_pending_pods{cluster=~"$cluster", tier=~"$tier"})'
    )


def test_an_undeclared_series_cannot_be_selected() -> None:
    with pytest.raises(KeyError, match="gputally_pending_pds"):
        Selectors("tier")("gputally_pending_pds")


def test_a_link_keeps_the_cluster_the_time_range_and_the_clicked_value() -> None:
    link = Link("Pending pods", "pending", {"tier": "preemptor_tier"})
    kept = "/d/gputally-pending?${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}"

    assert link.of_series()["url"] == f"{kept}&var-tier=${{__field.labels.preemptor_tier}}"
    assert link.of_cells({"preemptor_tier": "By"})["url"] == f'{kept}&var-tier=${{__data.fields["By"]}}'


def test_a_link_to_the_aggregator_passes_the_time_range_and_the_clicked_value(tmp_path: Path) -> None:
    link = AggregatorLink("Jobs", "/api/v1/preemptions", {"window": TIME_RANGE, "by": "job"}, {"tier": "victim_tier"})
    jobs = table(
        Look("Jobs", "All.", links=(link,)), {"victim_tier": "Victim"}, Column(head="N", expression="a", unit=COUNT)
    )
    board = Board(name="x", title="X", description="All.", variables=(), rows=(Row("All", (jobs,)),))
    ours = tmp_path / "ours.yaml"
    ours.write_text("aggregator: https://ours.example/")

    [panel] = [each for each in json.loads(rendered(board, read(ours)))["panels"] if each["title"] == "Jobs"]
    overrides = panel["fieldConfig"]["overrides"]
    [[found]] = [each["value"] for one in overrides for each in one["properties"] if each["id"] == "links"]

    period = "window=${__from:date:iso}/${__to:date:iso}"
    page = f"https://ours.example/api/v1/preemptions?{period}"
    assert found["url"] == f'{page}&by=job&tier=${{__data.fields["Victim"]}}'
