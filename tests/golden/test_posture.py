"""The posture of scenario S2, as written in each format for people."""

from pathlib import Path

import pytest

from gputally.cli import main
from tests.conftest import Golden

MANIFESTS = Path(__file__).parents[1] / "unit" / "posture" / "manifests"


@pytest.mark.parametrize("output", ["table", "markdown", "html", "json"])
def test_the_posture_is_as_recorded(
    output: str, golden: Golden, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MANIFESTS)

    main(["posture", "s2.yaml", "--output", output])

    golden.check(f"posture.{output}", capsys.readouterr().out)
