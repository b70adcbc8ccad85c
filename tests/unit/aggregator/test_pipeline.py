"""From observations to ledger and metrics: what is left out, what ends the process, and what is written when."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gputally.accounting.changes import Changes, Saved, new_accounts
from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.totals.total import Lines
from gputally.aggregator import ledger_writer
from gputally.aggregator.pipeline import Pipeline, assemble
from gputally.errors import LedgerError, LedgerUnwritable
from gputally.ledger.closed_period import ClosedPeriod
from gputally.ledger.sqlite.writer import SqliteLedger
from gputally.model.health import WatchHealth
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Bookmark, Observation, OtherPod, RelistStarted, Upserted
from gputally.model.rules import Rules
from tests.core.manifests import NodeForm, PodForm, as_event, as_node, as_pod, preempted_event, us
from tests.core.usage import assignment, hour, usage
from tests.fakes.bookkeeping import Time, open_pipeline
from tests.fakes.stream import BOOK, initial_listings, stream
from tests.fakes.until import until

OBSERVATIONS = stream(5, 30)


class SlowLedger:
    """A ledger in memory whose writes end when they are let, or fail as they are told."""

    def __init__(self) -> None:
        self.written: list[Changes] = []
        self.errors: list[Exception] = []
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        pass

    def saved(self, *, now_us: int) -> Saved:
        return new_accounts(now_us)

    def write(self, changes: Changes) -> Lines:
        self.began.set()
        assert self.may_end.wait(10)
        if self.errors:
            raise self.errors.pop(0)
        self.written.append(changes)
        return {}

    def finish_delivery(self, job_preemption: str, result: str, *, at_us: int) -> None:
        raise NotImplementedError

    def roll_up(self, before_us: int) -> Iterator[int]:
        raise NotImplementedError

    def add_up(self) -> Iterator[int]:
        raise NotImplementedError

    def bind(self, cluster: str) -> None:
        raise NotImplementedError

    def close_period(self, period: ClosedPeriod) -> None:
        raise NotImplementedError

    def check(self) -> Iterator[None]:
        raise NotImplementedError


@pytest.fixture
def ledger() -> SlowLedger:
    return SlowLedger()


@pytest.fixture
async def pipeline(ledger: SlowLedger) -> Pipeline:
    time = Time()
    fleet = Fleet(rules=Rules(), book=BOOK, saved=ledger.saved(now_us=time()))
    pipeline = assemble(
        fleet,
        ledger,
        clock=time,
        watches=tuple(WatchHealth(kind=kind, synced=True) for kind in Kind),
        first=[Kind.NODES],
    )
    pipeline.accountant.take([*initial_listings(time())])
    return pipeline


@pytest.fixture
def hold(ledger: SlowLedger) -> Iterator[None]:
    """Writes begin and do not end before the test says so."""
    ledger.may_end.clear()
    yield
    ledger.may_end.set()


def seen(gpus: str, name: str = "odd") -> Observation:
    manifest = PodForm(name=name).manifest()
    manifest["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return Upserted(kind=Kind.PODS, object=as_pod(manifest), at_us=us(40), since_us=us(40))


async def test_an_object_that_cannot_be_is_counted_and_the_rest_is_accounted(pipeline: Pipeline) -> None:
    pipeline.accountant.take([seen("half"), seen("10000000000000", name="greedy"), seen("2", name="fine")])

    assert pipeline.health.skipped == {Kind.PODS: 1}
    assert set(pipeline.fleet.pods.records) == {"uid-greedy", "uid-fine"}


async def test_forged_events_are_counted_and_told_of_once_for_each_namespace(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    for i in range(5):
        forged = preempted_event(PodForm(uid=f"{i}" * 200), by=PodForm(name="by"))
        pipeline.accountant.take([Upserted(kind=Kind.EVENTS, object=as_event(forged), at_us=us(40), since_us=us(40))])

    assert pipeline.health.skipped == {Kind.EVENTS: 5}
    assert [each.getMessage() for each in caplog.records if "Event" in each.getMessage()] == [
        "excluded from the accounting: object of namespace ml: an Event names a pod that cannot exist"
    ]


@pytest.mark.usefixtures("hold")
async def test_what_happens_while_a_write_is_under_way_is_written_next(pipeline: Pipeline, ledger: SlowLedger) -> None:
    pipeline.accountant.take(OBSERVATIONS[:50])
    flusher = asyncio.create_task(pipeline.writer.keep_flushed())
    await until(ledger.began.is_set)
    pipeline.accountant.take(OBSERVATIONS[50:])
    ledger.may_end.set()
    await until(lambda: len(ledger.written) == 2)

    flusher.cancel()
    assert ledger.written[1].resumes[Kind.PODS].version == str(len(OBSERVATIONS))


async def test_with_nothing_left_to_account_changes_are_written_at_once(
    pipeline: Pipeline, ledger: SlowLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_writer, "FLUSH_SECONDS", 3600)
    pipeline.accountant.take(OBSERVATIONS)
    flusher = asyncio.create_task(pipeline.writer.keep_flushed())
    await until(lambda: ledger.written)

    flusher.cancel()


async def write_all(pipeline: Pipeline, ledger: SlowLedger) -> None:
    """Write the first lists, as if nothing had been written."""
    await pipeline.writer.flush()
    ledger.written.clear()


REPEATED: list[list[Observation]] = [
    [Bookmark(kind=Kind.PODS, version="9", at_us=us(99), since_us=us(99))],
    [OtherPod(uid="o", node="n1", version="9", at_us=us(99), since_us=us(99), taken=None)],
    [usage(assignment(hour(50, 60, measured=10), since=50), at=99)],
]


@pytest.mark.parametrize("repeated", REPEATED)
async def test_what_the_next_process_would_get_again_is_written_later_or_with_the_next_change(
    pipeline: Pipeline, ledger: SlowLedger, monkeypatch: pytest.MonkeyPatch, repeated: list[Observation]
) -> None:
    monkeypatch.setattr(ledger_writer, "FLUSH_SECONDS", 0.0)
    await write_all(pipeline, ledger)
    flusher = asyncio.create_task(pipeline.writer.keep_flushed())
    pipeline.accountant.take(repeated)
    await asyncio.sleep(0.02)
    assert ledger.written == []
    pipeline.accountant.take(OBSERVATIONS)
    await until(lambda: ledger.written)

    monkeypatch.setattr(ledger_writer, "UNHURRIED_SECONDS", 0.02)
    pipeline.accountant.take(repeated)
    await until(lambda: len(ledger.written) == 2)
    flusher.cancel()


async def test_what_a_scrape_has_written_is_not_written_again(
    pipeline: Pipeline, ledger: SlowLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_writer, "UNHURRIED_SECONDS", 0.02)
    await write_all(pipeline, ledger)
    flusher = asyncio.create_task(pipeline.writer.keep_flushed())
    pipeline.accountant.take(REPEATED[0])
    await asyncio.sleep(0)
    await pipeline.exposition.scrape(openmetrics=False)
    await asyncio.sleep(0.04)

    flusher.cancel()
    assert len(ledger.written) == 1


@pytest.mark.parametrize("busy", ["a backlog", "a listing"])
async def test_writing_is_put_off_while_there_is_much_to_account_but_not_for_long(
    pipeline: Pipeline, ledger: SlowLedger, monkeypatch: pytest.MonkeyPatch, busy: str
) -> None:
    monkeypatch.setattr(ledger_writer, "FLUSH_SECONDS", 0.01)
    if busy == "a listing":
        pipeline.accountant.take([RelistStarted(kind=Kind.PODS, at_us=us(50))])
    else:
        await pipeline.intake.put(list(OBSERVATIONS), Kind.PODS)
    flusher = asyncio.create_task(pipeline.writer.keep_flushed())
    await asyncio.sleep(0.01)
    early = list(ledger.written)
    await until(lambda: ledger.written)

    flusher.cancel()
    assert early == []


@pytest.mark.usefixtures("hold")
async def test_changes_whose_write_was_cancelled_are_written_again(pipeline: Pipeline, ledger: SlowLedger) -> None:
    pipeline.accountant.take(OBSERVATIONS[:50])
    flush = asyncio.create_task(pipeline.writer.flush())
    await until(ledger.began.is_set)
    flush.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flush
    ledger.may_end.set()

    pipeline.writer.close()

    first, last = ledger.written
    assert first.revisions
    assert first.revisions.items() <= last.revisions.items()


async def test_closing_writes_what_is_left_as_of_now(pipeline: Pipeline, ledger: SlowLedger) -> None:
    pipeline.accountant.take(OBSERVATIONS)

    pipeline.writer._clock = Time(us(90_000))
    pipeline.writer.close()

    [last] = ledger.written
    assert last.resumes[Kind.PODS].version == str(len(OBSERVATIONS))
    assert last.at_us == us(90_000)


async def test_rows_lost_at_closing_are_an_error_and_the_thread_has_ended(
    pipeline: Pipeline, ledger: SlowLedger
) -> None:
    pipeline.accountant.take(OBSERVATIONS)
    ledger.errors = [LedgerUnwritable("x.db: cannot be used now: disk full")]

    with pytest.raises(
        LedgerUnwritable, match=r"x\.db: cannot be used now: disk full; \d+ rows were not written; the next start"
    ):
        pipeline.writer.close()

    assert not any(thread.name.startswith("ledger") for thread in threading.enumerate())


async def test_after_a_bug_nothing_is_published_or_written(
    pipeline: Pipeline, ledger: SlowLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline.fleet, "observe", lambda _: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        pipeline.accountant.take(OBSERVATIONS[:1])

    with pytest.raises(RuntimeError, match="the accounting has failed"):
        await pipeline.exposition.scrape(False)  # noqa: FBT003 - the shape the web side asks for
    with pytest.raises(RuntimeError, match="the accounting has failed"):
        await pipeline.writer.flush()
    pipeline.writer.close()
    assert ledger.written == []


async def test_a_ledger_that_cannot_be_trusted_any_more_ends_the_process(
    pipeline: Pipeline, ledger: SlowLedger
) -> None:
    ledger.errors = [LedgerError("x.db: is corrupt")]

    with pytest.raises(LedgerError, match="is corrupt"):
        await pipeline.writer.keep_flushed()
    pipeline.writer.close()


async def test_counters_stand_still_until_the_watches_have_told_what_happened_while_nobody_watched(
    tmp_path: Path,
) -> None:
    running = PodForm(node="n0", scheduled=1000, started=1000)
    finished = replace(running, version=2, phase="Succeeded", finished=2000)
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        before = open_pipeline(ledger, time := Time(us(1000)), zero_us=0)
        before.accountant.take([told(running, at=1000)])
        await allocated(before)  # in which series begin as 0
        time.now_us = us(1500)
        assert await allocated(before) == pytest.approx(500)
        before.writer.close()

        after = open_pipeline(ledger, time := Time(us(9000)), zero_us=0)
        pods = next(watch for watch in after.health.watches if watch.kind is Kind.PODS)
        pods.synced = False
        assert await allocated(after) == pytest.approx(500)
        pods.synced = True
        await after.intake.put([told(finished, at=9000)])
        assert await allocated(after) == pytest.approx(500)
        after.accountant.take(await after.intake.get())
        assert await allocated(after) == 1000
        after.writer.close()


def told(form: PodForm, *, at: float) -> Observation:
    return Upserted(kind=Kind.PODS, object=as_pod(form), at_us=us(at), since_us=us(at))


async def allocated(pipeline: Pipeline) -> float:
    """GPU-seconds that the counters show."""
    text = (await pipeline.exposition.scrape(False)).decode()  # noqa: FBT003 - the shape the web side asks for
    families = text_string_to_metric_families(text)
    return sum(
        s.value for family in families for s in family.samples if s.name == "gputally_allocated_gpu_seconds_total"
    )


async def test_a_scrape_is_in_the_ledger_before_it_is_answered(tmp_path: Path) -> None:
    time = Time()
    with SqliteLedger(tmp_path / "ledger.db") as ledger:
        fleet = Fleet(rules=Rules(), book=BOOK, saved=ledger.saved(now_us=time()))
        pipeline = assemble(fleet, ledger, clock=time)
        pipeline.accountant.take((*initial_listings(time()), *OBSERVATIONS[:50]))
        time.now_us = us(5000)
        await pipeline.exposition.scrape(False)  # noqa: FBT003 - the shape the web side asks for

        assert ledger.saved(now_us=0).evaluated_us == us(5000)
        pipeline.writer.close()


async def test_a_node_whose_labels_contradict_its_units_is_named_once(
    pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    labels = {"nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "1"}
    for i in range(3):
        form = NodeForm(name="shared", gpus=50 * (i != 1), labels=labels, cordoned=i == 2)
        pipeline.accountant.take([Upserted(kind=Kind.NODES, object=as_node(form), at_us=us(40), since_us=us(40))])

    assert [each.getMessage() for each in caplog.records if "shared" in each.getMessage()] == [
        "node shared: it offers more GPU units than its labels explain; a unit counts as a share of a GPU"
    ]
