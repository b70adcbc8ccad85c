"""The process that answers questions about a ledger: warm while it is asked, and without memory of who asked."""

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from gputally.answers.parameters import InvalidRequest
from gputally.commands.from_ledger.question_loop import Frames
from gputally.questions.answer import LENGTH_BYTES
from gputally.questions.ledger_question import LedgerQuestion
from gputally.questions.preemptions import Preemptions
from gputally.questions.report import Report
from gputally.questions.waits import Waits
from gputally.web import ledger_process
from gputally.web.ledger_process import LedgerProcess, ReportFailed, ReportUnavailable
from tests.fakes.tenants_ledger import BLUE, RED, tenants_ledger

MODULE = ledger_process._PROGRAM[-1]
ALL = Report(window="all", output="json")
OF_BLUE = ALL.restricted_to({BLUE})
TOO_EARLY = replace(ALL, window="1999")


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[LedgerProcess]:
    found = LedgerProcess(str(tenants_ledger(tmp_path)))
    yield found
    await found.end()


def pid(process: LedgerProcess) -> int | None:
    return process._process.pid if process._process else None


def tenants(answer: bytes) -> set[str]:
    return {row["tenant"] for row in json.decode(answer)["rows"]}


async def test_it_answers_each_question_and_survives_those_that_have_no_answer(process: LedgerProcess) -> None:
    first = await process.answer(ALL)
    warm = pid(process)
    with pytest.raises(InvalidRequest, match=r"^window: nothing is accounted in '1999'"):
        await process.answer(TOO_EARLY)
    waits = await process.answer(Waits(window="all", output="csv"))
    preemptions = await process.answer(Preemptions(window="all", output="table"))

    assert tenants(first) == {RED, BLUE, f"{BLUE}s"}
    assert waits.startswith(b"tenant,cause,occupying_tier,")
    assert preemptions.startswith(b"Disrupted pods from ")
    assert await process.answer(ALL) == first
    assert pid(process) == warm is not None


async def test_it_remembers_nothing_of_who_asked_before(process: LedgerProcess) -> None:
    alone = await process.answer(OF_BLUE)
    for before in (ALL, OF_BLUE, TOO_EARLY, replace(ALL, page=True), Waits(window="all").restricted_to({RED})):
        try:
            await process.answer(before)
        except InvalidRequest:
            assert before is TOO_EARLY
        assert await process.answer(OF_BLUE) == alone
    assert tenants(alone) == {BLUE}
    assert tenants(await process.answer(ALL)) == {RED, BLUE, f"{BLUE}s"}


@pytest.mark.parametrize("question", [ALL, Waits(), Preemptions()])
def test_the_restriction_is_in_the_question_that_the_process_reads(question: Report | Waits | Preemptions) -> None:
    sent = json.decode(json.encode(question.restricted_to({BLUE, RED})))

    assert sent["only_tenants"] == sorted({BLUE, RED})
    assert sent.get("tiers_only", True) is True


async def test_a_process_that_was_killed_is_replaced(process: LedgerProcess) -> None:
    first = await process.answer(ALL)
    killed = process._process
    assert killed
    killed.kill()
    async with asyncio.timeout(10):
        await killed.wait()

    assert await process.answer(ALL) == first
    assert pid(process) not in (None, killed.pid)


async def test_a_process_that_is_killed_after_it_waited_is_replaced_for_the_same_question(
    process: LedgerProcess,
) -> None:
    first = await process.answer(ALL)
    killed = pid(process)
    assert killed
    os.kill(killed, signal.SIGSTOP)
    asked = asyncio.create_task(process.answer(ALL))
    await asyncio.sleep(0.05)
    os.kill(killed, signal.SIGKILL)

    assert await asked == first
    assert pid(process) not in (None, killed)


@pytest.mark.parametrize(
    ("before", "statements", "count"),
    [([], "", 1), ([ALL], "", 2), ([ALL], "print('x' * 2**17); ", 1)],
    ids=["new", "waited", "waited, and the answer had begun"],
)
async def test_a_question_that_kills_a_new_process_is_not_asked_again(
    process: LedgerProcess,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    before: list[Report],
    statements: str,
    count: int,
) -> None:
    asked = tmp_path / "asked"
    kill = f"open({str(asked)!r}, 'a').write('x'); {statements}os.kill(os.getpid(), 9)"
    monkeypatch.setattr(ledger_process, "_PROGRAM", answering_waits_by(kill))
    for each in before:
        await process.answer(each)
    with pytest.raises(ReportFailed) as failed:
        await process.answer(Waits())

    assert (failed.value.status, len(asked.read_text())) == (-signal.SIGKILL, count)
    assert tenants(await process.answer(OF_BLUE)) == {BLUE}


async def test_a_question_that_is_cancelled_leaves_no_answer_for_the_next_one(process: LedgerProcess) -> None:
    await process.answer(ALL)
    asked = asyncio.create_task(process.answer(ALL))
    await asyncio.sleep(0.005)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)

    assert tenants(await process.answer(OF_BLUE)) == {BLUE}


async def test_it_ends_when_nobody_asks(process: LedgerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_process, "IDLE_SECONDS", 0.05)
    await process.answer(ALL)
    warm = process._process
    assert warm

    async with asyncio.timeout(10):
        assert await warm.wait() == -signal.SIGKILL
    assert pid(process) is None


async def test_it_ends_after_an_answer_that_left_much_memory_in_use_and_the_next_question_gets_another(
    process: LedgerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_process, "_PROGRAM", program("loop.WARM_BYTES = 0"))
    first = await process.answer(ALL)

    assert pid(process) is None
    assert [await process.answer(ALL) for _ in range(3)] == [first] * 3


@pytest.mark.parametrize(
    ("limit", "value", "problem"),
    [
        ("OUTPUT_BYTES", 10, "the report is longer than 0 MiB; choose a shorter period"),
        ("TIMEOUT_SECONDS", 0.0, "the report took more than 0 s; choose a shorter period"),
    ],
)
async def test_what_is_beyond_a_limit_ends_a_warm_process(
    process: LedgerProcess, monkeypatch: pytest.MonkeyPatch, limit: str, value: float, problem: str
) -> None:
    first = await process.answer(ALL)
    with monkeypatch.context() as limited:
        limited.setattr(ledger_process, limit, value)
        with pytest.raises(ReportUnavailable, match=problem):
            await process.answer(ALL)

    assert pid(process) is None
    assert await process.answer(ALL) == first


async def test_a_part_that_is_too_long_is_not_read(process: LedgerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    announces = "import os, sys; os.write(1, (2**24).to_bytes(4, 'big')); sys.stdin.read()"
    monkeypatch.setattr(ledger_process, "_PROGRAM", (*ledger_process._PROGRAM[:2], "-c", announces))
    with pytest.raises(ReportUnavailable, match="the report is longer than 8 MiB; choose a shorter period"):
        await process.answer(ALL)


def test_what_is_printed_at_once_comes_in_small_parts() -> None:
    file, printed = io.BytesIO(), bytes(range(256)) * 1000
    with io.BufferedWriter(Frames(file), 2**16) as out:
        out.write(printed)
    file.seek(0)
    parts = [file.read(int.from_bytes(length, "big")) for length in iter(lambda: file.read(LENGTH_BYTES), b"")]

    assert max(map(len, parts)) == 2**16
    assert b"".join(parts) == printed


async def test_half_an_answer_before_an_error_is_no_part_of_the_next_one(
    process: LedgerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_process, "_PROGRAM", answering_waits_by("print('half'); 1 / 0"))
    first = await process.answer(ALL)
    warm = pid(process)
    with pytest.raises(ReportFailed) as failed:
        await process.answer(Waits())
    again = await process.answer(ALL)

    assert "ZeroDivisionError: division by zero" in failed.value.errors
    assert (again, pid(process)) == (first, warm)


async def test_a_question_that_needs_too_much_memory_says_so_and_ends_the_process(
    process: LedgerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_process, "_PROGRAM", answering_waits_by("raise MemoryError"))
    await process.answer(ALL)
    with pytest.raises(ReportUnavailable, match="the report needs more than 256 MiB; choose a shorter period"):
        await process.answer(Waits())

    assert pid(process) is None


def answering_waits_by(statement: str) -> tuple[str, ...]:
    """The program, of which the function that answers questions for waits is another one."""
    return program(
        f"def answer(*_): {statement}",
        "known = loop._answering",
        "loop._answering = lambda kind: answer if kind is loop.Waits else known(kind)",
    )


def program(*changes: str) -> tuple[str, ...]:
    """The program with these changes."""
    lines = (f"import os, {MODULE} as loop", *changes, "loop.main()")
    return (*ledger_process._PROGRAM[:2], "-c", "\n".join(lines))


async def test_a_ledger_that_cannot_be_read_is_for_the_log(tmp_path: Path) -> None:
    process, question = LedgerProcess(str(tmp_path / "none.db")), LedgerQuestion()
    with pytest.raises(ReportFailed, match=r"^the report failed; see the log$") as failed:
        await process.answer(ALL)
    assert (failed.value.status, "none.db: no such file" in failed.value.errors) == (4, True)

    with pytest.raises(ReportFailed):  # no command answers it
        await process.answer(question)
    await process.end()
