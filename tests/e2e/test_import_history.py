"""The import from a real Prometheus against gputally's own ledger of the same pods: stated against observed error."""

import sys
from pathlib import Path

import pytest

from hack.build import KUBE_STATE_METRICS
from tests.cluster.api import Api
from tests.cluster.control_plane import ControlPlane
from tests.e2e.imported_history import Comparison, Setting, observed

pytestmark = pytest.mark.e2e


BUILT = pytest.mark.skipif(
    not KUBE_STATE_METRICS.path.exists(), reason="not built: python -m hack.build kube-state-metrics"
)
SHORT, LONG = {"seconds": 45, "interval_s": 2}, {"seconds": 1800, "interval_s": 15}
SETTINGS = [
    pytest.param(Setting(**SHORT, is_real=False), id="page"),
    pytest.param(Setting(**SHORT, is_real=True), id="kube-state-metrics", marks=BUILT),
    pytest.param(Setting(**LONG, is_real=False), id="page-half-an-hour", marks=pytest.mark.campaign),
    pytest.param(
        Setting(**LONG, is_real=True), id="kube-state-metrics-half-an-hour", marks=(BUILT, pytest.mark.campaign)
    ),
]


@pytest.mark.parametrize("setting", SETTINGS)
async def test_the_stated_error_covers_the_observed_one(
    control_plane: ControlPlane,
    api: Api,
    place: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    setting: Setting,
) -> None:
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
