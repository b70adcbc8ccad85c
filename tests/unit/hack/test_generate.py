from pathlib import Path

import pytest

from gputally.aggregator.settings import SETTINGS
from hack import generate
from hack.chart import CHART, FILES, VALUES
from hack.generate import BEGIN, END, main, outdated, with_flags
from monitoring.config import Config, ConfigInvalid
from monitoring.generate import boards, groups

MARK = BEGIN.format(part="flags", source="gputally.aggregator.settings")
CLOSING = END.format(part="flags")


def test_the_table_of_flags_replaces_what_stands_between_its_marks() -> None:
    page = with_flags(
        f"before\n{MARK}outdated line\n{CLOSING}after\n", module="gputally.aggregator.settings", table=SETTINGS
    )

    assert page.startswith(f"before\n{MARK}| Flag |")
    assert page.endswith(f"|\n{CLOSING}after\n")
    assert "outdated line" not in page
    assert "`--web.listen-address HOST:PORT` | `GPUTALLY_WEB_LISTEN_ADDRESS` | `:9836`" in page


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the lines"):
        with_flags(
            BEGIN.format(part="flags", source="other") + CLOSING, module="gputally.aggregator.settings", table=SETTINGS
        )


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A root with the pages of which only a part is generated."""
    (tmp_path / "docs").mkdir()
    for page, part, source in (
        ("configuration", "flags", "aggregator.settings"),
        ("agent", "flags", "agent.agent_settings"),
        ("accounting", "tables", "ledger.tables"),
    ):
        marks = BEGIN.format(part=part, source=f"gputally.{source}") + END.format(part=part)
        (tmp_path / f"docs/{page}.md").write_text(marks)
    (tmp_path / CHART).mkdir(parents=True)
    (tmp_path / CHART / "Chart.yaml").write_text("version: 0.0.0\n")
    (tmp_path / VALUES).write_text("# -- A port.\nport: 80\n")
    return tmp_path


def test_a_file_is_outdated_until_it_holds_what_the_code_says(pages: Path) -> None:
    stale = [path for path in outdated(pages) if path.parent.name == "docs"]

    assert {path.name for path in stale} == {"accounting.md", "metrics.md", "configuration.md", "agent.md"}
    assert main([], pages) == 0
    assert outdated(pages) == {}


def test_what_nothing_declares_any_more_is_named_and_then_removed(
    pages: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left_over = pages / "dashboards/generated/gone.json"
    main([], pages)
    left_over.write_text("{}")

    assert main(["--check"], pages) == 1
    assert capsys.readouterr().out.endswith("dashboards/generated/gone.json: not current; run make generate\n")
    assert main([], pages) == 0
    assert not left_over.exists()
    assert main(["--check"], pages) == 0


def test_every_declared_dashboard_and_rule_is_written(pages: Path) -> None:
    main([], pages)

    assert {path.stem for path in (pages / "dashboards/generated").iterdir()} == set(boards())
    assert {path.stem for path in (pages / "alerts/generated/rules").iterdir()} == set(groups())


def test_the_chart_packs_copies_of_dashboards_and_a_rule_file_for_each_that_is_generated(pages: Path) -> None:
    main([], pages)

    assert contents(pages / FILES / "dashboards") == contents(pages / "dashboards/generated")
    assert contents(pages / FILES / "rules").keys() == contents(pages / "alerts/generated/rules").keys()


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_an_invalid_configuration_of_alerts_is_said_in_one_line(
    pages: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def invalid() -> Config:
        raise ConfigInvalid("alerts/config.yaml: what is wrong")

    monkeypatch.setattr(generate, "read", invalid)

    assert main(["--check"], pages) == 1
    assert capsys.readouterr().out == "alerts/config.yaml: what is wrong\n"
