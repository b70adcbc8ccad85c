"""HTTPS to agents: whose certificates count, and ours."""

from pathlib import Path

import pytest

from gputally.aggregator.agent_client import PullFailed, agent_client
from gputally.aggregator.settings import AgentOptions, Target
from gputally.errors import ConfigError
from gputally.model.usage import PullOutcome
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
        agent_client(AgentOptions(authority=certificates.authority)) as client,
    ):
        unnamed = agent.url.replace("127.0.0.1", "localhost")

        assert await client.report(Target("n1", unnamed)) == REPORT


async def test_an_agent_signed_by_a_stranger_is_not_listened_to(certificates: Certificates) -> None:
    async with (
        serving(FakeAgent(REPORT), certificates.server_context(wants_client=False)) as agent,
        agent_client(AgentOptions()) as client,
    ):
        with pytest.raises(PullFailed, match="certificate verify failed") as told:
            await client.report(Target("n1", agent.url))

    assert told.value.outcome is PullOutcome.UNREACHABLE


async def test_a_certificate_is_shown_to_an_agent_that_wants_one(certificates: Certificates) -> None:
    choice = AgentOptions(
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

    role = "--agents.ca-file" if is_authority else "--agents.cert-file"
    with pytest.raises(ConfigError, match=f"{file}: {role}: cannot be used: .*; use readable PEM files"):
        async with agent_client(AgentOptions(authority=file) if is_authority else AgentOptions(certificate=file)):
            pass


async def test_a_certificate_and_an_authority_that_were_replaced_are_read_anew(tmp_path: Path) -> None:
    before, after = made_in(tmp_path / "before"), made_in(tmp_path / "after")
    authority, certificate, key = (tmp_path / name for name in ("ca.crt", "client.crt", "client.key"))

    def place(made: Certificates) -> None:
        authority.write_bytes(made.authority.read_bytes())
        certificate.write_bytes(made.certificate("client").read_bytes())
        key.write_bytes(made.key("client").read_bytes())

    place(before)
    async with (
        serving(FakeAgent(REPORT), after.server_context(wants_client=True)) as agent,
        agent_client(AgentOptions(authority=authority, certificate=certificate, key=key)) as client,
    ):
        with pytest.raises(PullFailed):
            await client.report(Target("n1", agent.url))
        place(after)

        assert await client.report(Target("n1", agent.url)) == REPORT


def made_in(folder: Path) -> Certificates:
    folder.mkdir()
    return Certificates(folder)
