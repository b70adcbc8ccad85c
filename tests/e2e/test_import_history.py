"""The import from a real Prometheus against gputally's own ledger of the same pods: stated against observed error."""

import sys
from pathlib import Path

import pytest

from hack.build import KUBE_STATE_METRICS
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.e2e.imported_history import Comparison, Setting, observed

pytestmark = pytest.mark.e2e

EXPORTERS = [
    pytest.param(False, id="page"),
    pytest.param(
        True,
        id="kube-state-metrics",
        marks=pytest.mark.skipif(
            not KUBE_STATE_METRICS.path.exists(), reason="not built: python -m hack.build kube-state-metrics"
        ),
    ),
]


@pytest.mark.parametrize("is_real", EXPORTERS)
async def test_the_stated_error_covers_the_observed_one(
    control_plane: ControlPlane,
    api: Api,
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_real: bool,
) -> None:
    setting = Setting(seconds=45, interval_s=2, is_real=is_real)

    found = await observed(control_plane, api, place, tmp_path, setting)

    with capsys.disabled():
        sys.stdout.write(found.report())
    check(found)


@pytest.mark.campaign
@pytest.mark.parametrize("is_real", EXPORTERS)
async def test_the_stated_error_covers_the_observed_one_of_half_an_hour(
    control_plane: ControlPlane,
    api: Api,
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    is_real: bool,
) -> None:
    setting = Setting(seconds=1800, interval_s=15, is_real=is_real)

    found = await observed(control_plane, api, place, tmp_path, setting)

    with capsys.disabled():
        sys.stdout.write(found.report())
    check(found)


def check(found: Comparison) -> None:
    """The stated error is an upper bound, pods have ended in all ways, and no tenant is missing."""
    for tenant in found.tenants.values():
        assert tenant.imported > 0
        assert abs(tenant.observed) <= tenant.stated, found.report()
    assert {"succeeded", "failed", "deleted", "preempted"} <= set(found.outcomes), found.report()
    assert found.sampled, found.report()
