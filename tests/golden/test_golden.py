from pathlib import Path

import pytest

from tests.conftest import Golden


def test_an_output_as_recorded_passes(tmp_path: Path) -> None:
    Golden(tmp_path, update=True).check("page/a.md", "ü\n")

    Golden(tmp_path, update=False).check("page/a.md", "ü\n".encode())


def test_a_changed_output_fails_with_its_difference(tmp_path: Path) -> None:
    Golden(tmp_path, update=True).check("a.md", "same\nold\n")

    with pytest.raises(pytest.fail.Exception, match=r"-old\n\+new"):
        Golden(tmp_path, update=False).check("a.md", "same\nnew\n")


@pytest.mark.parametrize("changed", ["line\r\n", "line"])
def test_a_change_of_line_ends_alone_fails_too(tmp_path: Path, changed: str) -> None:
    Golden(tmp_path, update=True).check("a.md", "line\n")

    with pytest.raises(pytest.fail.Exception, match="line ends alone"):
        Golden(tmp_path, update=False).check("a.md", changed)


def test_an_output_never_recorded_fails_with_the_way_to_record_it(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="--update-goldens"):
        Golden(tmp_path, update=False).check("a.md", "text")
