"""Every dashboard can be drawn from real data; with GPUTALLY_PICTURES=FOLDER, the pictures are kept there."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hack.pictures.__main__ import main
from tests.monitoring_e2e.day import SCRAPE_S, Day
from tests.monitoring_e2e.notify import ROOT

pytestmark = pytest.mark.e2e

BOARDS = sorted((ROOT / "dashboards" / "generated").glob("*.json"))


def test_every_dashboard_is_drawn(day: Day, tmp_path: Path) -> None:
    folder = Path(os.environ.get("GPUTALLY_PICTURES", tmp_path))
    shown = day.whole
    at = datetime.fromtimestamp(shown.end, UTC).isoformat()
    span = ("--at", at, "--range", f"{round(shown.end - shown.start)}s", "--scrape-interval", f"{SCRAPE_S}s")

    assert main([*map(str, BOARDS), "--prometheus", day.prometheus.url, *span, "--to", str(folder)]) == 0

    assert {path.stem for path in folder.glob("*.png")} >= {path.stem for path in BOARDS}
