from pathlib import Path

import pytest

from gputally.runtime.settings import SETTINGS
from hack.generate import BEGIN, END, outdated, with_flags

MARK = BEGIN.format(module="settings")


def test_the_table_of_flags_replaces_what_stands_between_its_marks() -> None:
    page = with_flags(f"before\n{MARK}old\n{END}after\n", module="settings", table=SETTINGS)

    assert page.startswith(f"before\n{MARK}| Flag |")
    assert page.endswith(f"|\n{END}after\n")
    assert "old" not in page
    assert "`--web.listen-address HOST:PORT` | `GPUTALLY_WEB_LISTEN_ADDRESS` | `:9836`" in page


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the lines"):
        with_flags(BEGIN.format(module="other") + END, module="settings", table=SETTINGS)


def test_a_file_is_outdated_until_it_holds_what_the_code_says(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for page, module in (("configuration", "settings"), ("agent", "agent_settings")):
        (tmp_path / f"docs/{page}.md").write_text(BEGIN.format(module=module) + END)

    stale = outdated(tmp_path)
    for path, content in stale.items():
        path.write_text(content)

    assert {path.name for path in stale} == {"metrics.md", "configuration.md", "agent.md"}
    assert outdated(tmp_path) == {}
