"""What /v1/usage answers, and to whom."""

import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import ClientResponse, ClientSession

from gputally.export.usage import usage_route
from gputally.export.web import Readiness, Site, serve
from gputally.model.usage import VERSION, GpuReport, UsageReport

REPORT = UsageReport(
    version=VERSION,
    epoch="e1",
    node="node-1",
    now_us=5,
    watermark_us=4,
    gpus=(GpuReport(uuid="GPU-0", model="H100", source="samples", watermark_us=4),),
)


@asynccontextmanager
async def asked(headers: dict[str, str], *, token: Callable[[], str] | None = None) -> AsyncIterator[ClientResponse]:
    async def scrape(_openmetrics: bool) -> bytes:  # noqa: FBT001 - the shape the web side asks for
        return b""

    route = usage_route(lambda: REPORT, token=token)
    site = Site(title="t", about="a", version="1", scrape=scrape, ready=Readiness, routes=[route])
    async with (
        serve(site, addresses=["127.0.0.1:0"]) as [address],
        ClientSession(auto_decompress=False) as session,
        session.get(f"http://{address}/v1/usage", headers=headers) as response,
    ):
        yield response


async def test_whoever_shows_the_token_gets_the_report() -> None:
    async with asked(
        {"Authorization": "Bearer secret", "Accept-Encoding": "identity"}, token=lambda: "secret"
    ) as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        assert msgspec.json.decode(await response.read(), type=UsageReport) == REPORT


@pytest.mark.parametrize("shown", ["", "Bearer", "Bearer secre", "Bearer secret2", "Basic secret", "Bearer \xe9"])
async def test_nobody_else_does(shown: str) -> None:
    async with asked({"Authorization": shown} if shown else {}, token=lambda: "secret") as response:
        assert response.status == 401
        assert response.headers["WWW-Authenticate"] == 'Bearer realm="gputally"'
        assert b"GPU-0" not in await response.read()


async def test_a_token_that_cannot_be_read_lets_nobody_in(caplog: pytest.LogCaptureFixture) -> None:
    def unreadable() -> str:
        raise FileNotFoundError("token")

    async with asked({"Authorization": "Bearer "}, token=unreadable) as response:
        assert response.status == 401
    assert "the token cannot be read: token" in caplog.text


async def test_without_a_token_everyone_is_answered_and_compressed_if_they_like() -> None:
    async with asked({"Accept-Encoding": "gzip"}) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert msgspec.json.decode(gzip.decompress(await response.read()), type=UsageReport) == REPORT
