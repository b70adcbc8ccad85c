"""Skips the test if promtool or Prometheus is not built."""

import pytest

from tests.e2e.conftest import skip_without_control_plane


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_control_plane(items)
