"""Random histories last a minute and a half: what takes longer in a cluster is shortened, for every property alike."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from gputally.accounting.facts import release
from gputally.accounting.nodes import labels
from gputally.model.units import US_PER_SECOND
from tests import true_nodes
from tests.truth import ACCEPTANCE

OUTLIVES = 15
"""Seconds for which labels outlive their absence here: no history takes an hour."""


@pytest.fixture(autouse=True, scope="module")
def short_memory() -> Iterator[None]:
    """Labels that are away for long show within a history."""
    with (
        patch.object(labels, "OUTLIVE_US", OUTLIVES * US_PER_SECOND),
        patch.object(true_nodes, "OUTLIVES", OUTLIVES),
    ):
        yield


@pytest.fixture(autouse=True, scope="module")
def impatient() -> Iterator[None]:
    """Pods wait for their kubelet's word about as long as they live here."""
    with patch.object(release, "ACCEPTANCE_US", ACCEPTANCE * US_PER_SECOND):
        yield
