"""Real monitoring for end-to-end tests; each has servers of its own."""

from collections.abc import AsyncIterator

import pytest

from tests.e2e.conftest import skip_without_control_plane
from tests.prometheus.page import Page, served
from tests.prometheus.receiver import Receiver, receiving


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_without_control_plane(items)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    async with served() as page:
        yield page
