"""The aggregator in this process, on the simulated cluster: from start to end, in good times and bad."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gputally.accounting.disruptions.node_signals import EVENT_KINDS
from gputally.accounting.fleet.fleet import Fleet
from gputally.aggregator import aggregator
from gputally.aggregator.accountant import Accountant
from gputally.aggregator.aggregator import aggregate
from gputally.aggregator.settings import Settings
from gputally.errors import ApiForbidden, LedgerError
from gputally.kube.api import Api
from gputally.kube.reflector import Batches
from gputally.kube.watched import Resource, resources
from gputally.ledger.open import open_reader
from gputally.ledger.open_to_write import open_ledger
from gputally.ledger.records import Window
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark, Observation, RelistFinished, RelistStarted
from gputally.model.rules import Rules
from gputally.model.units import GPU_SECOND, US_PER_DAY
from gputally_sim.cluster import SimCluster
from tests.contract.records import pod, segment, step, us
from tests.core.ledgers import ALWAYS
from tests.fakes.aggregating import aggregating, until_ready
from tests.fakes.command import fallen, get, scrape, sum_of
from tests.fakes.kubeconfigs import kubeconfig
from tests.fakes.until import until
from tests.unit.aggregator.conftest import NOON_US

WATCHED = [each.kind for each in resources(Rules())]
CONFIGURATION = "kind: Configuration\ntenants:\n  rules:\n    - from: namespace-label\n      key: team\n"


async def test_it_is_alive_at_once_and_ready_when_all_is_known(settings: Settings, cluster: SimCluster) -> None:
    cluster.faults.hold_lists()
    async with aggregating(settings, cluster) as (running, url):
        health, (status, reasons) = await get(f"{url}/healthz"), await get(f"{url}/readyz")
        cluster.faults.resume()
        await until_ready(running)
        ready = await get(f"{url}/readyz")

    assert health == (200, "ok\n")
    assert status == 503
    # the Events asked for are a selection, not held
    listed = [kind for kind in WATCHED if kind not in EVENT_KINDS]
    assert set(reasons.splitlines()) >= {f"watch {kind}: no complete list yet" for kind in listed}
    assert ready == (200, "ok\n")


async def test_while_what_classifies_pods_is_listed_only_lists_that_are_read_ahead_begin(
    settings: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server aborts a list whose client reads nothing for a minute; the next one would be aborted as well."""
    begun, listing = list[str](), cluster.faults.listing

    async def recorded(plural: str) -> None:
        begun.append(plural)
        await listing(plural)

    monkeypatch.setattr(cluster.faults, "listing", recorded)
    cluster.faults.hold_lists("namespaces")
    async with aggregating(settings, cluster) as (running, _):
        await until(running.pipeline.intake.listed[Kind.NODES].is_set)
        await asyncio.sleep(0.2)
        first = set(begun)
        cluster.faults.resume()
        await until_ready(running)

    assert first == {"pods", "nodes", "namespaces", "priorityclasses"}
    assert "jobs" in begun


def test_what_classifies_pods_is_read_ahead() -> None:
    assert all(each.reads_ahead for each in resources(Rules()) if each.is_first)


async def test_a_scrape_shows_the_fleet_and_its_books_add_up(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        await until(lambda: all(watch.connected for watch in running.pipeline.health.watches))
        samples = await scrape(url)

    assert sum_of(samples, "gputally_nodes") == 8
    assert sum_of(samples, "gputally_allocated_gpus") == 8
    assert sum_of(samples, "gputally_watch_connected") == len(WATCHED)
    assert {value for name, value in samples.items() if name.startswith("gputally_reconciliation_difference")} == {0}


async def test_events_that_wait_make_a_ready_process_no_less_ready(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, _):
        await until_ready(running)
        await running.pipeline.intake.put([Bookmark(kind=Kind.PODS, version="1", at_us=0, since_us=0)])

        assert running.ready().missing == ()


async def test_watches_held_back_by_a_full_ledger_are_a_reason_not_to_be_ready(
    settings: Settings, cluster: SimCluster
) -> None:
    async with aggregating(settings, cluster) as (running, _):
        await until_ready(running)
        running.pipeline.health.ledger.waiting = 7
        running.pipeline.writer.room.clear()

        assert running.ready().missing == ("ledger: 7 rows wait to be written, the watches are paused",)


async def test_asked_to_stop_it_leaves_everything_in_the_ledger(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        samples = await scrape(url)
        known = set(running.pipeline.fleet.pods.records)

    with SqliteLedger(Path(settings.ledger)) as ledger:
        saved = ledger.saved(now_us=0)
    with open_reader(settings.ledger) as reader:
        held = {each.pod_uid for each in reader.allocations(ALWAYS) if each.end_us is None}
    assert known <= {record.uid for record in saved.pods} | held
    assert len(held) == sum_of(samples, "gputally_allocated_gpus") == 8


async def test_with_a_retention_it_rolls_old_allocations_up(settings: Settings, cluster: SimCluster) -> None:
    path = Path(settings.ledger)
    with SqliteLedger(path) as ledger:
        ledger.write(step(pod("old", segment(1000, 2000), end_us=us(2000)), at=2000))

    def rolled_up() -> bool:
        with open_reader(settings.ledger) as reader:
            return reader.state().detail_start_us is not None

    async with aggregating(replace(settings, retention_days=62), cluster):
        await until(rolled_up)
        with open_reader(settings.ledger) as reader:
            [found] = reader.allocated(Window(us(1000), US_PER_DAY), ("job",))
    assert found.gpu_time == 1000 * GPU_SECOND


async def test_started_again_it_goes_on_where_it_was(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        await scrape(url)
        before = await scrape(url)

    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        after = await scrape(url)
        listings = {watch.kind: watch.listings for watch in running.pipeline.health.watches}

    assert fallen(before, after) == []
    assert (listings[Kind.PODS], listings[Kind.NODES]) == (0, 0), "the watches of what ends were not resumed"
    assert {value for name, value in after.items() if name.startswith("gputally_reconciliation_difference")} == {0}


async def test_time_is_the_servers_and_how_far_ours_is_off_shows(settings: Settings, tmp_path: Path) -> None:
    async with SimCluster(start_us=NOON_US) as cluster:
        settings = replace(settings, kubeconfig=kubeconfig(tmp_path / "other", cluster.url, {"token": "any"}))
        async with aggregating(settings, cluster, real_time=True) as (running, url):
            await until_ready(running)
            samples = await scrape(url)
            off_s = time.time() - cluster.clock.now_us() / 1_000_000

    assert abs(samples["gputally_clock_skew_seconds"] - off_s) < 1.1
    assert abs(samples["gputally_accounting_start_timestamp_seconds"] - NOON_US / 1_000_000) < 10


async def test_a_simulated_time_is_taken_as_it_is(settings: Settings, cluster: SimCluster) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        samples = await scrape(url)

    assert samples["gputally_clock_skew_seconds"] == 0


async def test_under_other_rules_all_pods_are_listed_anew(
    settings: Settings, cluster: SimCluster, tmp_path: Path
) -> None:
    async with aggregating(settings, cluster) as (running, _):
        await until_ready(running)
    (tmp_path / "config.yaml").write_text(CONFIGURATION)

    async with aggregating(replace(settings, config=tmp_path / "config.yaml"), cluster) as (running, _):
        await until_ready(running)
        pods = next(watch for watch in running.pipeline.health.watches if watch.kind is Kind.PODS)

        assert pods.listings == 1


async def test_an_api_server_that_goes_away_for_a_while_costs_neither_readiness_nor_pods(
    settings: Settings, cluster: SimCluster
) -> None:
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        watches = running.pipeline.health.watches
        cluster.faults.refuse(8, 503)
        cluster.faults.drop_watches()
        await until(lambda: not any(watch.connected for watch in watches))
        away = await get(f"{url}/readyz")
        cluster.registry.create("namespaces", {"metadata": {"name": "later"}})
        pod = cluster.registry.create("pods", gpu_pod(), "later")
        await until(lambda: all(watch.connected for watch in watches))
        await until(lambda: pod.doc["metadata"]["uid"] in running.pipeline.fleet.pods.records)

        assert away == (200, "ok\n")
        assert [watch.listings for watch in watches] == [1] * len(watches), "a watch lost its place"


def gpu_pod() -> dict[str, object]:
    requests = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}
    return {"metadata": {"name": "late"}, "spec": {"containers": [{"name": "c", "image": "i", "resources": requests}]}}


async def test_pods_are_read_while_what_classifies_them_is_listed_and_accounted_after_that(
    settings: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, listed = list[Kind](), asyncio.Event()

    async def nodes_last(_: Api, resource: Resource, **__: object) -> Batches:
        kind = resource.kind
        yield [RelistStarted(kind=kind, at_us=NOON_US)]
        if kind is Kind.NODES:
            await listed.wait()
        yield [RelistFinished(kind=kind, version="1", at_us=NOON_US, since_us=None, as_of_us=NOON_US)]
        await asyncio.Event().wait()

    def take(accountant: Accountant, batch: list[Observation]) -> None:
        taken.extend(each.kind for each in batch if isinstance(each, RelistFinished))
        real_take(accountant, batch)

    real_take = Accountant.take
    monkeypatch.setattr(aggregator, "run_reflector", nodes_last)
    monkeypatch.setattr(Accountant, "take", take)
    async with aggregating(settings, cluster) as (running, _):
        of_pods = 2
        await until(lambda: running.pipeline.intake.size == of_pods and len(taken) == 2)
        early = list(taken)
        listed.set()
        await until(lambda: len(taken) == len(WATCHED))

    assert set(early) == {Kind.NAMESPACES, Kind.PRIORITY_CLASSES}
    assert taken[2] is Kind.NODES


async def test_a_bug_in_a_watch_ends_the_process_with_its_traceback(
    settings: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> Batches:
        yield [Bookmark(kind=Kind.PODS, version="1", at_us=0, since_us=0)]
        raise ZeroDivisionError

    monkeypatch.setattr(aggregator, "run_reflector", broken)

    with pytest.raises(ExceptionGroup) as raised:
        await aggregate(settings, cluster.clock.now_us)

    assert raised.group_contains(ZeroDivisionError)
    with SqliteLedger(Path(settings.ledger)) as ledger:
        assert ledger.saved(now_us=0).pods == ()


async def test_a_bug_in_the_accounting_ends_the_process_and_nothing_half_done_is_written(
    settings: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe, applied = Fleet.observe, list[Observation]()

    def breaks_at_the_tenth(fleet: Fleet, observation: Observation) -> None:
        applied.append(observation)
        observe(fleet, observation)
        if len(applied) == 10:
            raise ZeroDivisionError

    monkeypatch.setattr(Fleet, "observe", breaks_at_the_tenth)

    with pytest.raises(ExceptionGroup) as raised:
        await aggregate(settings, cluster.clock.now_us)

    assert raised.group_contains(ZeroDivisionError)
    with SqliteLedger(Path(settings.ledger)) as ledger:
        assert len(ledger.saved(now_us=0).nodes) < 10


async def test_a_ledger_that_becomes_corrupt_ends_the_process(
    settings: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def corrupt(*_: object) -> None:
        raise LedgerError("is corrupt")

    monkeypatch.setattr(SqliteLedger, "write", corrupt)

    with pytest.raises(LedgerError, match="is corrupt"):
        await aggregate(settings, cluster.clock.now_us)


async def test_what_can_be_done_without_is_taken_up_when_it_can_be_had(
    settings: Settings, cluster: SimCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gputally.kube.failures.LONGEST_SECONDS", 0.05)
    monkeypatch.setattr("gputally.kube.failures.FIRST_SECONDS", 0.05)
    cluster.faults.forbidden = {"events", "jobs", "priorityclasses"}
    async with aggregating(settings, cluster) as (running, url):
        await until_ready(running)
        without = await scrape(url)
        cluster.faults.forbidden = set()
        await until(lambda: all(watch.synced for watch in running.pipeline.health.watches))
        samples = await scrape(url)

    assert sum_of(without, "gputally_allocated_gpus") == sum_of(samples, "gputally_allocated_gpus") == 8
    assert sum_of(without, "gputally_watch_available") == 0
    assert sum_of(samples, "gputally_watch_available") == 5


async def test_after_a_failed_start_the_ledger_is_free(settings: Settings, cluster: SimCluster) -> None:
    cluster.faults.forbidden = {"pods"}
    with pytest.raises(ApiForbidden):
        await aggregate(settings, cluster.clock.now_us)

    with open_ledger(settings.ledger) as ledger:
        assert ledger.saved(now_us=0).pods == ()
