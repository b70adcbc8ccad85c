"""Two days in a real Prometheus: the board of preemptions shows what the ledger has."""

from argparse import Namespace
from pathlib import Path

import pytest

from labs.week.__main__ import draw_week

pytestmark = pytest.mark.e2e


async def test_the_board_of_two_days_equals_the_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scratch, to = tmp_path / "scratch", tmp_path / "pictures"
    scratch.mkdir()

    assert await draw_week(scratch, Namespace(days=2, ledger=None, to=to)) == 0

    shown = capsys.readouterr().out
    assert (to / "preemption.png").exists()
    assert "Jobs ended early  foundation training-standard completed_early" in shown
    assert "Jobs ended early  foundation training-standard failed_early" in shown
