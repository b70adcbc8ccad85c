"""One of several API servers has a clock that is a day ahead: its dates are rejected, at start and later."""

import asyncio
import gc
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gputally.ledger.sqlite.writer import SqliteLedger
from tests.behaviour.product import Product, Samples, total
from tests.behaviour.published import differences
from tests.behaviour.stage import Stage
from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import gpu_pod
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.lying_proxy import DAY_S, LyingProxy, lying_proxy

GPUS = 8
REJECTED = "gputally_api_dates_rejected_total"


@pytest.fixture(autouse=True)
def connections() -> Iterator[None]:
    """Collect broken TLS connections within the test, where unclosed ones are ignored, and not at the end."""
    yield
    gc.collect()


@pytest.fixture
async def proxy(stage: Stage, plane: ControlPlane | None, tmp_path: Path) -> AsyncIterator[LyingProxy]:
    """A proxy between the cluster and the product; one pod runs on eight GPUs."""
    async with lying_proxy(stage.api.session) as proxy:
        user = {"token": plane.token("gputally") if plane else "any"}
        stage.product = Product(tmp_path, Path(kubeconfig(tmp_path / "proxied", proxy.url, user)))
        await stage.furnish(nodes=1, gpus=GPUS, tiers={}, teams={"ml": "ml"})
        await stage.create(gpu_pod("long", "ml", gpus=GPUS))
        await stage.running(1)
        try:
            yield proxy
        finally:
            await stage.product.kill()


async def test_a_date_a_day_ahead_on_one_connection_is_counted_and_rejected(stage: Stage, proxy: LyingProxy) -> None:
    started = time.time()
    await stage.product.start()
    await stage.product.scrape()
    proxy.lie()
    samples = await rejected(stage)
    await asyncio.sleep(1)  # the counters must continue from here
    samples = await stage.product.scrape()

    assert proxy.lied > 0
    assert 0 < total(samples, "gputally_allocated_gpu_seconds_total") < GPUS * (time.time() - started + 1)
    assert total(samples, "gputally_overcount_gpu_seconds", counter="allocated") == 0
    assert total(samples, "gputally_clock_skew_seconds") == 0
    assert differences(samples) == {0}
    await stage.product.stop()
    with SqliteLedger(stage.product.ledger) as ledger:
        assert ledger.saved(now_us=0).evaluated_us < (time.time() + 1) * 1_000_000


async def test_accounting_starts_at_the_present_if_the_first_responses_are_a_day_ahead(
    stage: Stage, proxy: LyingProxy
) -> None:
    proxy.lie()
    await stage.product.start()
    samples = await stage.product.scrape()

    assert 0 < total(samples, REJECTED) <= proxy.lied
    assert abs(total(samples, "gputally_accounting_start_timestamp_seconds") - time.time()) < 60


async def test_a_ledger_evaluated_a_day_ahead_continues_in_the_present_with_its_exported_values(
    stage: Stage, proxy: LyingProxy
) -> None:
    await stage.product.start()
    await stage.product.scrape()
    await stage.product.stop()
    assert not proxy.lied
    with closing(sqlite3.connect(stage.product.ledger)) as ledger, ledger:
        ledger.execute("UPDATE meta SET value = value + ? WHERE key IN ('evaluated_us', 'at_us')", (DAY_S * 10**6,))

    await stage.product.start()
    samples = await stage.product.scrape()

    shown = total(samples, "gputally_allocated_gpu_seconds_total")
    overcount = total(samples, "gputally_overcount_gpu_seconds", counter="allocated")
    assert shown == pytest.approx(GPUS * DAY_S, rel=0.01)
    assert 0 < shown - overcount < 1000
    assert differences(samples) == {0}


async def rejected(stage: Stage) -> Samples:
    """The samples once a Date was rejected."""
    async with asyncio.timeout(60):
        while not total(samples := await stage.product.scrape(), REJECTED):  # noqa: ASYNC110 - it sends no signal
            await asyncio.sleep(0.2)
    return samples
