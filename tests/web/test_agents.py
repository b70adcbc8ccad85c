"""An aggregator's client and an agent's server, both as they are, with certificates and a token that are replaced."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gputally.agent.responses import PATH, usage_route
from gputally.aggregator.agent_client import PullFailed, agent_client
from gputally.aggregator.settings import AgentOptions, Target
from gputally.model.usage import PullOutcome
from gputally.web.access_policy import own_token, policy_source
from gputally.web.server import Readiness, Site, serve
from tests.core.usage import report
from tests.fakes.certificates import Certificates
from tests.fakes.policies import MUTUAL, config, page

REPORT = report(at=20)


@asynccontextmanager
async def agent(web_config: Path, token: Path) -> AsyncIterator[Target]:
    tokens: dict[str, Callable[[], str]] = own_token(token, PATH, role="--usage.token-file")
    route = usage_route(lambda _: REPORT)
    site = Site(
        title="t", about="a", version="1", scrapes={"/metrics": page}, ready=Readiness, routes=[route], tokens=tokens
    )
    async with serve(site, addresses=["127.0.0.1:0"], policy_source=policy_source(web_config)) as [address]:
        yield Target("n1", f"https://{address}")


async def test_certificates_and_tokens_are_replaced_on_both_sides_without_a_restart(tmp_path: Path) -> None:
    certificates, expected, shown = Certificates(tmp_path), tmp_path / "expected", tmp_path / "shown"
    write(expected, "first")
    write(shown, "first")
    choice = AgentOptions(
        token=shown,
        authority=certificates.authority,
        certificate=certificates.certificate("client"),
        key=certificates.key("client"),
    )
    async with agent(config(tmp_path, MUTUAL), expected) as target, agent_client(choice) as client:
        assert await client.report(target) == REPORT

        certificates.renew("server")
        certificates.renew("client")
        assert await client.report(target) == REPORT

        write(expected, "second")
        with pytest.raises(PullFailed, match=f"responds with 401; make sure that {shown} contains the token") as told:
            await client.report(target)
        assert told.value.outcome is PullOutcome.FORBIDDEN

        write(shown, "second")
        assert await client.report(target) == REPORT


def write(file: Path, text: str) -> None:
    file.write_text(text)
