"""One request to one agent: what it tells, or why it cannot be used."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from gputally.aggregator import agent_client as client_module
from gputally.aggregator.agent_client import AgentClient, PullFailed, agent_client
from gputally.aggregator.settings import AgentOptions, Target
from gputally.errors import ConfigError
from gputally.model.rules import MigBasis
from gputally.model.usage import PullOutcome, UsageCursor, UsageReport
from tests.core.usage import assignment, gpu, hour, report
from tests.fakes.agent import FakeAgent, serving

REPORT = report(assignment(hour(12, 20, measured=8, used=6), since=12), at=20, gpus=(gpu(joules=7, watermark=20),))


@pytest.fixture
async def agent() -> AsyncIterator[FakeAgent]:
    async with serving(FakeAgent(REPORT)) as agent:
        yield agent


@pytest.fixture
async def client() -> AsyncIterator[AgentClient]:
    async with agent_client(AgentOptions()) as client:
        yield client


async def failure(client: AgentClient, agent: FakeAgent, *, deadline_s: float = 5) -> tuple[PullOutcome, str]:
    """Why there is no report, without the URL."""
    with pytest.raises(PullFailed) as told:
        await client.report(Target("n1", agent.url), deadline_s=deadline_s)
    return told.value.outcome, str(told.value).replace(f"{agent.url}/v1/usage: ", "")


async def test_a_report_comes_as_it_was_told(client: AgentClient, agent: FakeAgent) -> None:
    assert await client.report(Target("n1", agent.url)) == REPORT


async def test_an_agent_is_asked_for_what_changed_since_the_report_that_is_accounted(
    client: AgentClient, agent: FakeAgent
) -> None:
    agent.body = replace(REPORT, revision=8, since=7)
    assert await client.report(Target("n1", agent.url, UsageCursor("e1", 7))) == agent.body
    agent.body = replace(REPORT, epoch="e2", revision=2)
    assert await client.report(Target("n1", agent.url, UsageCursor("e1", 8))) == agent.body, "it began anew"
    await client.report(Target("n1", agent.url, UsageCursor("e 2&a=%", 2)))

    assert agent.since == ["e1.7", "e1.8", "e 2&a=%.2"]


@pytest.mark.parametrize("asked", [None, UsageCursor("e1", 6), UsageCursor("e0", 7)])
async def test_changes_since_another_report_than_asked_for_are_refused(
    client: AgentClient, agent: FakeAgent, asked: UsageCursor | None
) -> None:
    agent.body = replace(REPORT, revision=8, since=7)
    with pytest.raises(PullFailed, match="reports changes since another report than asked for") as told:
        await client.report(Target("n1", agent.url, asked))

    assert told.value.outcome is PullOutcome.MALFORMED


async def test_mig_devices_weighed_by_another_basis_are_refused(agent: FakeAgent) -> None:
    """Else what is idle could cost more than what is allocated. Agents that do not tell weigh by compute."""
    on_mig = replace(REPORT, assignments=(assignment(hour(12, 20, measured=8), since=12, device="MIG-1"),))
    async with agent_client(AgentOptions(mig_basis=MigBasis.MEMORY)) as client:
        assert await client.report(Target("n1", agent.url)) == REPORT
        agent.body = on_mig
        outcome, text = await failure(client, agent)
        agent.body = replace(on_mig, mig_basis="memory")
        assert await client.report(Target("n1", agent.url)) == agent.body

    assert outcome is PullOutcome.BASIS
    assert text == ("weights MIG devices by compute, this aggregator by memory; start both with the same --config.file")


@pytest.mark.parametrize(
    ("body", "outcome", "text"),
    [
        (b"<html>", PullOutcome.MALFORMED, "not a valid report: JSON is malformed: invalid character (byte 0)"),
        (b"", PullOutcome.MALFORMED, "not a valid report: Input data was truncated"),
        (b"[" * 100_000, PullOutcome.MALFORMED, "not a valid report: Expected `object`, got `array`"),
        (b'{"version": 1}', PullOutcome.MALFORMED, "not a valid report: Object missing required field `epoch`"),
        (
            b'{"version": 2}',
            PullOutcome.VERSION,
            "report version 2, but this gputally reads 1; upgrade the older of the two",
        ),
        (
            replace(REPORT, version=3),
            PullOutcome.VERSION,
            "report version 3, but this gputally reads 1; upgrade the older of the two",
        ),
        (replace(REPORT, node="n2"), PullOutcome.NODE, "reports node 'n2', but runs on 'n1'"),
        (replace(REPORT, epoch=""), PullOutcome.MALFORMED, "the header of the report is implausible"),
        (replace(REPORT, revision=1 << 62), PullOutcome.MALFORMED, "the header of the report is implausible"),
        (replace(REPORT, journal_start_us=-1), PullOutcome.MALFORMED, "the header of the report is implausible"),
    ],
)
async def test_what_is_no_report_of_that_node_is_refused(
    client: AgentClient, agent: FakeAgent, body: UsageReport | bytes, outcome: PullOutcome, text: str
) -> None:
    agent.body = body

    assert await failure(client, agent) == (outcome, text)


async def test_an_answer_larger_than_any_report_is_not_read_to_its_end(
    client: AgentClient, agent: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "MAX_BYTES", 1 << 20)
    agent.body = b" " * (1 << 20) + msgspec.json.encode(REPORT)

    assert await failure(client, agent) == (PullOutcome.OVERSIZED, "the response is larger than 1 MiB")


async def test_an_answer_that_does_not_end_is_given_up(client: AgentClient, agent: FakeAgent) -> None:
    agent.complete.clear()

    assert await failure(client, agent, deadline_s=0.05) == (PullOutcome.TIMEOUT, "no complete response within 0.05 s")


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_any_other_status_is_no_report_and_nothing_leads_elsewhere(
    client: AgentClient, agent: FakeAgent, status: int
) -> None:
    agent.status = status

    assert await failure(client, agent) == (PullOutcome.STATUS, f"responds with {status} instead of a report")


async def test_nobody_there_is_told(client: AgentClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        nobody = FakeAgent(b"")
        nobody.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    outcome, text = await failure(client, nobody)

    assert outcome is PullOutcome.UNREACHABLE
    assert "Cannot connect to host" in text


async def test_a_packed_answer_is_not_unpacked(client: AgentClient, agent: FakeAgent) -> None:
    agent.body = b"\x1f\x8b\x08"

    assert (await failure(client, agent))[0] is PullOutcome.MALFORMED


@asynccontextmanager
async def showing(token: Path) -> AsyncIterator[AgentClient]:
    async with agent_client(AgentOptions(token=token)) as client:
        yield client


async def test_a_token_is_shown_and_read_again_when_it_changes(agent: FakeAgent, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    agent.token = "first"
    async with showing(file) as client:
        assert await client.report(Target("n1", agent.url)) == REPORT

        agent.token = "second!"
        refusal = f"responds with 401; make sure that {file} contains the token it expects"
        assert await failure(client, agent) == (PullOutcome.FORBIDDEN, refusal)
        file.write_text("second!")
        assert await client.report(Target("n1", agent.url)) == REPORT

        file.unlink()
        assert await client.report(Target("n1", agent.url)) == REPORT


async def test_without_a_token_one_is_asked_for(client: AgentClient, agent: FakeAgent) -> None:
    agent.token = "any"

    remedy = "responds with 401; specify the file of the token it expects with --agents.token-file"
    assert await failure(client, agent) == (PullOutcome.FORBIDDEN, remedy)


@pytest.mark.parametrize("content", [None, "", "two\nlines", "é"])
async def test_a_file_without_a_token_is_told_at_the_start(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_text(content)

    with pytest.raises(
        ConfigError, match=r"token: --agents.token-file: cannot be used: .*; use a (readable file|token)"
    ):
        async with showing(file):
            pass
