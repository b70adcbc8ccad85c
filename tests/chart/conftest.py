"""Chart tests need Helm: `make e2e` builds it; otherwise they run only if it is built."""

import os
from pathlib import Path

import pytest

from hack.build import OF_THE_CHART
from tests.chart.helm import REMEDY
from tests.conftest import Golden
from tests.e2e.conftest import api, control_plane, skip_without_control_plane

__all__ = ["api", "control_plane"]  # fixtures are found by their names

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all chart tests for `make e2e`, before pytest selects tests by marker."""
    own = [item for item in items if item.path.is_relative_to(HERE)]
    skip_without_control_plane(own)
    for item in own:
        if os.environ.get("GPUTALLY_E2E") == "1":
            item.add_marker("e2e")
        elif not all(binary.path.exists() for binary in OF_THE_CHART):
            item.add_marker(pytest.mark.skip(reason=REMEDY))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(HERE / "golden", update=request.config.getoption("--update-goldens"))
