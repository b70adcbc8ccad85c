import pytest

from tests.e2e.conftest import skip_without_control_plane


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_control_plane(items)
    for item in items:  # killed servers leave unclosed client sockets
        item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
