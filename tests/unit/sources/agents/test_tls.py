"""HTTPS to agents: whose certificates count, and ours."""

from pathlib import Path

import pytest

from gputally.errors import ConfigError
from gputally.model.agent import Outcome
from gputally.sources.agents.choice import AgentChoice, Target
from gputally.sources.agents.client import PullFailed, agent_client
from tests.core.usage import report
from tests.fakes.agent import FakeAgent, serving
from tests.fakes.certificates import Certificates

REPORT = report(at=20)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


async def test_an_agent_signed_by_the_authority_answers_whatever_its_address(certificates: Certificates) -> None:
    async with (
        serving(FakeAgent(REPORT), certificates.server_context(wants_client=False)) as agent,
        agent_client(AgentChoice(authority=certificates.authority)) as client,
    ):
        unnamed = agent.url.replace("127.0.0.1", "localhost")

        assert await client.report(Target("n1", unnamed)) == REPORT


async def test_an_agent_signed_by_a_stranger_is_not_listened_to(certificates: Certificates) -> None:
    async with (
        serving(FakeAgent(REPORT), certificates.server_context(wants_client=False)) as agent,
        agent_client(AgentChoice()) as client,
    ):
        with pytest.raises(PullFailed, match="certificate verify failed") as told:
            await client.report(Target("n1", agent.url))

    assert told.value.outcome is Outcome.UNREACHABLE


async def test_a_certificate_is_shown_to_an_agent_that_wants_one(certificates: Certificates) -> None:
    choice = AgentChoice(
        authority=certificates.authority,
        certificate=certificates.certificate("client"),
        key=certificates.key("client"),
    )
    async with (
        serving(FakeAgent(REPORT), certificates.server_context(wants_client=True)) as agent,
        agent_client(choice) as client,
    ):
        assert await client.report(Target("n1", agent.url)) == REPORT


@pytest.mark.parametrize("is_authority", [True, False])
@pytest.mark.parametrize("content", [None, "no PEM"])
async def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str | None, *, is_authority: bool) -> None:
    file = tmp_path / "some.pem"
    if content:
        file.write_text(content)

    with pytest.raises(ConfigError, match=f"{file}: cannot be used"):
        async with agent_client(AgentChoice(authority=file) if is_authority else AgentChoice(certificate=file)):
            pass
