from pathlib import Path

import pytest

from monitoring.config import ConfigInvalid, read
from monitoring.rule import Alert, Group
from monitoring.rules import rule_file


def stated(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return path


def test_a_custom_file_needs_only_the_differences(tmp_path: Path) -> None:
    mine = read(stated(tmp_path, "alerts: {InferencePodsPending: {seconds: 30}}\nhardware_xids: '48'"))

    assert mine.terms("InferencePodsPending")["seconds"] == 30
    assert mine.terms("InferencePodsPending")["severity"] == read().terms("InferencePodsPending")["severity"]
    assert mine.terms("GputallyGpuLost") == {
        **read().terms("GputallyGpuLost"),
        "hardware_xids": "48",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "alerts: {InferencePodsPendin: {seconds: 30}}",
            "mine.yaml: alerts.InferencePodsPendin: there is no such field",
        ),
        (
            "alerts: {GputallyGpuLost: {secs: 30}}",
            "mine.yaml: alerts.GputallyGpuLost.secs: there is no such field; there are severity",
        ),
        ("alerts: {GputallyGpuLost: 30}", "mine.yaml: alerts.GputallyGpuLost: write it as in config.yaml"),
        ("objective: {share: most}", r"mine.yaml: Expected `float`, got `str` - at `\$.objective.share`"),
        ("- 1", "mine.yaml: holds no fields"),
        ("a: [", "mine.yaml: "),
    ],
)
def test_an_error_names_its_file_and_field(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigInvalid, match=problem):
        read(stated(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match=r"nowhere\.yaml"):
        read(tmp_path / "nowhere.yaml")


def test_custom_thresholds_are_in_the_rules(tmp_path: Path) -> None:
    config = read(
        stated(tmp_path, "alerts: {GputallyGpuLost: {severity: critical, for: 7m}}\ngrafana: https://g.example.com")
    )
    alert = Alert(
        name="GputallyGpuLost",
        expression='up{xid=~"$hardware_xids"} < 1',
        summary="Gone.",
        description="Gone {{ $labels.gpu }}, {{ $value }}.",
        dashboard="node",
        variables=("gpu",),
    )

    text = rule_file(Group(name="x", alerts=(alert,)), config)

    assert "for: 7m\n" in text
    assert "severity: critical\n" in text
    assert f'expr: up{{xid=~"{config.hardware_xids}"}} < 1\n' in text
    assert "description: Gone {{ $labels.gpu }}, {{ $value }}.\n" in text
    assert "dashboard_url: https://g.example.com/d/gputally-node?var-gpu={{ $labels.gpu | urlquery }}\n" in text


def test_a_missing_threshold_is_reported() -> None:
    alert = Alert(name="GputallyGpuLost", expression="up > $nowhere", summary="", description="", dashboard="node")

    with pytest.raises(ConfigInvalid, match=r"alerts\.GputallyGpuLost\.nowhere: missing"):
        rule_file(Group(name="x", alerts=(alert,)), read())


def test_an_alert_missing_in_the_configuration_is_reported() -> None:
    alert = Alert(name="Unheard", expression="up", summary="", description="", dashboard="node")

    with pytest.raises(ConfigInvalid, match=r"alerts\.Unheard: missing"):
        rule_file(Group(name="x", alerts=(alert,)), read())
