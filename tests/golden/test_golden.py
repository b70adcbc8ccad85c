from pathlib import Path

import pytest

from tests.conftest import Golden


def test_an_output_as_recorded_passes(tmp_path: Path) -> None:
    Golden(tmp_path, update=True).check("page/a.md", "ü\n")

    Golden(tmp_path, update=False).check("page/a.md", "ü\n".encode())


def test_a_changed_output_fails_with_a_diff(tmp_path: Path) -> None:
    Golden(tmp_path, update=True).check("a.md", "same\nold\n")

    with pytest.raises(pytest.fail.Exception, match=r"-old\n\+new"):
        Golden(tmp_path, update=False).check("a.md", "same\nnew\n")


@pytest.mark.parametrize("changed", ["line\r\n", "line"])
def test_a_change_of_only_line_endings_fails_too(tmp_path: Path, changed: str) -> None:
    Golden(tmp_path, update=True).check("a.md", "line\n")

    with pytest.raises(pytest.fail.Exception, match="only in line endings"):
        Golden(tmp_path, update=False).check("a.md", changed)


def test_a_missing_recording_fails_with_instructions(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="--update-goldens"):
        Golden(tmp_path, update=False).check("a.md", "text")
