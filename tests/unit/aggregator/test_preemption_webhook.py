"""Each record of a preemption reaches the webhook at least once, under one ID, whatever fails on the way."""

import asyncio
import logging
from itertools import count
from pathlib import Path

import pytest

from gputally.aggregator import preemption_webhook
from gputally.aggregator.preemption_webhook import MOST_FAILURES, PAGE, url_source
from gputally.errors import ConfigError
from tests.fakes.delivering import delivering, pending, record
from tests.fakes.until import until
from tests.fakes.webhook import DROP, SECRET, Receiver, listening


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed records are repeated without a pause."""
    monkeypatch.setattr(preemption_webhook, "INTERVAL_SECONDS", 0.0)


async def test_a_record_is_posted_with_its_id_as_idempotency_key_and_then_never_again(path: Path) -> None:
    receiver = Receiver()
    async with delivering(record(path, "a"), receiver) as process:
        assert await process.once()
        assert await process.once()
        assert (process.results, process.pending) == ({"delivered": 1}, 0)
    async with delivering(path, receiver) as process:
        assert await process.once()

    [document] = receiver.accepted
    assert receiver.attempts == ["a"]
    assert receiver.headers[0]["Content-Type"] == "application/json"
    assert (document["id"], document["version"], document["cluster"]) == ("a", 1, "cluster-1")
    assert (document["job"], document["lost_pods"], document["is_final"]) == ("train-a", 8, True)
    assert document["text"].startswith("ml/Job/train-a of tier low: pod pod-a with 1 GPUs preempted at ")
    assert pending(path) == set()


async def test_the_preemptor_is_only_its_tier(path: Path) -> None:
    receiver = Receiver()
    async with delivering(record(path, "a"), receiver) as process:
        await process.once()

    [document] = receiver.accepted
    assert (document["preemptor_tiers"], document["preemptors"]) == (["high"], None)
    assert "pod-b" not in str(document)


@pytest.mark.parametrize("status", [500, 503, 429, 408, 401, 403, 404, 405, 410, 302, 307, DROP])
@pytest.mark.usefixtures("at_once")
async def test_a_failed_delivery_is_repeated_under_the_same_id_and_logged_once(
    path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = Receiver(status, status)
    with caplog.at_level(logging.INFO):
        async with delivering(record(path, "a"), receiver) as process:
            for _ in range(3):
                await process.once()
            assert process.results == {"failed": 2, "delivered": 1}

    assert receiver.attempts == ["a"] * 3
    logged = [each.levelname for each in caplog.records if "preemption webhook" in each.getMessage()]
    assert logged == ["WARNING", "INFO"]
    assert pending(path) == set()


@pytest.mark.parametrize("status", [500, 401])
async def test_a_failed_delivery_is_repeated_after_growing_pauses(
    path: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(preemption_webhook, "monotonic", lambda: now[0])
    receiver = Receiver(answer=lambda _: status)
    times: list[float] = []
    async with delivering(record(path, "a"), receiver) as process:
        for now[0] in range(1000):
            await process.once()
            times += [now[0]] * (len(receiver.attempts) - len(times))

    assert times == [0, 5, 15, 35, 75, 155, 315, 615, 915]


@pytest.mark.parametrize("status", [400, 413, 415, 422])
@pytest.mark.usefixtures("at_once")
async def test_a_rejected_record_is_counted_logged_once_and_not_repeated(
    path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = Receiver(answer=lambda _: status)
    with caplog.at_level(logging.INFO):
        async with delivering(record(path, "a", "b"), receiver) as process:
            await process.once()
            await process.once()
            assert (process.results, process.pending) == ({"rejected": 2}, 0)

    assert receiver.attempts == ["a", "b"]
    assert [each.getMessage().count(f"HTTP {status}") for each in caplog.records if "webhook" in each.message] == [1]


@pytest.mark.usefixtures("at_once")
async def test_no_record_is_lost_while_the_token_in_the_url_is_wrong(path: Path) -> None:
    token = ["old"]
    receiver = Receiver(answer=lambda _: 200 if token == ["new"] else 403)
    async with delivering(record(path, "a", "b"), receiver) as process:
        await process.once()
        assert pending(path) == {"a", "b"}
        token[0] = "new"
        await process.once()

    assert receiver.ids == ["a", "b"]
    assert pending(path) == set()


@pytest.mark.usefixtures("at_once")
async def test_a_record_that_the_webhook_cannot_take_does_not_delay_others(path: Path) -> None:
    receiver = Receiver(answer=lambda document: 500 if document["id"] == "b" else 200)
    async with delivering(record(path, "a", "b", "c"), receiver) as process:
        assert await process.once()

    assert receiver.ids == ["a", "c"]
    assert pending(path) == {"b"}


async def test_while_the_webhook_is_down_it_gets_few_requests(path: Path) -> None:
    receiver = Receiver(answer=lambda _: 503)
    async with delivering(record(path, *"abcdefgh"), receiver) as process:
        assert not await process.once()

    assert len(receiver.attempts) == MOST_FAILURES


async def test_more_records_than_a_page_are_all_delivered(path: Path) -> None:
    ids = [f"{number:04}" for number in range(2 * PAGE + 1)]
    receiver = Receiver()
    async with delivering(record(path, *ids), receiver) as process:
        assert await process.once()
        assert process.pending == 0

    assert receiver.ids == ids


async def test_no_message_shows_the_url(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        async with delivering(record(path, "a", "b", "c"), Receiver(500, DROP, 404)) as process:
            await process.once()

    assert "preemption webhook" in caplog.text
    assert SECRET not in caplog.text


async def test_the_url_is_read_again_when_its_file_changes(path: Path) -> None:
    first, second = Receiver(), Receiver()
    async with delivering(record(path, "a"), first) as process, listening(second, path.parent):
        await process.once()

    assert (first.ids, second.ids) == ([], ["a"])


async def test_the_task_repeats_until_it_is_cancelled(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preemption_webhook, "INTERVAL_SECONDS", 0.01)
    receiver = Receiver(500, 500, 500)
    async with delivering(record(path, "a"), receiver) as process:
        task = asyncio.create_task(process.webhook.run())
        await until(lambda: receiver.accepted)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("text", [None, "", "ftp://x", "http://a\nhttp://b"])
def test_a_file_without_one_url_is_an_error_at_the_start(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "hook"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ConfigError, match="--preemption-webhook-url-file"):
        url_source(path)


async def test_a_webhook_that_takes_some_records_is_not_taken_to_be_down(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds, pauses = count(step=1000), list[float]()

    async def noting(pause: float) -> None:
        pauses.append(pause)
        await asyncio.sleep(0.001)

    monkeypatch.setattr(preemption_webhook, "monotonic", lambda: next(seconds))
    monkeypatch.setattr(preemption_webhook, "sleep", noting)
    receiver = Receiver(*[200, *[500] * MOST_FAILURES] * 3, *[500] * 2 * MOST_FAILURES)
    async with delivering(record(path, *"abcdefghijkl"), receiver) as process:
        task = asyncio.create_task(process.webhook.run())
        await until(lambda: len(pauses) == 5)
        task.cancel()

    assert pauses == [5, 5, 5, 10, 20]
