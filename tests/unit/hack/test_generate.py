from pathlib import Path

import pytest

from hack.generate import BEGIN, END, configuration, outdated


def test_the_table_of_flags_replaces_what_stands_between_its_marks() -> None:
    page = configuration(f"before\n{BEGIN}old\n{END}after\n")

    assert page.startswith(f"before\n{BEGIN}| Flag |")
    assert page.endswith(f"|\n{END}after\n")
    assert "old" not in page
    assert "`--web.listen-address HOST:PORT` | `GPUTALLY_WEB_LISTEN_ADDRESS` | `:9836`" in page


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the lines"):
        configuration("no marks\n")


def test_a_file_is_outdated_until_it_holds_what_the_code_says(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/configuration.md").write_text(BEGIN + END)

    stale = outdated(tmp_path)
    for path, content in stale.items():
        path.write_text(content)

    assert {path.name for path in stale} == {"metrics.md", "configuration.md"}
    assert outdated(tmp_path) == {}
