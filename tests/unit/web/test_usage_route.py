"""What /v1/usage answers; tests of the guard say to whom."""

import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import ClientResponse, ClientSession

from gputally.agent.responses import usage_route
from gputally.model.usage import VERSION, GpuReport, UsageCursor, UsageReport
from gputally.web.server import Readiness, Site, serve

REPORT = UsageReport(
    version=VERSION,
    epoch="e1",
    node="node-1",
    now_us=5,
    watermark_us=4,
    gpus=(GpuReport(uuid="GPU-0", model="H100", source="samples", watermark_us=4),),
)


@asynccontextmanager
async def asked(
    encoding: str, *, since: str = "", report: Callable[[UsageCursor | None], UsageReport] = lambda _: REPORT
) -> AsyncIterator[ClientResponse]:
    async def scrape(_openmetrics: bool) -> bytes:  # noqa: FBT001 - the shape the web side asks for
        return b""

    route = usage_route(report)
    site = Site(title="t", about="a", version="1", scrapes={"/metrics": scrape}, ready=Readiness, routes=[route])
    async with (
        serve(site, addresses=["127.0.0.1:0"]) as [address],
        ClientSession(auto_decompress=False) as session,
        session.get(f"http://{address}/v1/usage{since}", headers={"Accept-Encoding": encoding}) as response,
    ):
        yield response


async def test_the_report_is_json() -> None:
    async with asked("identity") as response:
        assert response.status == 200
        assert response.content_type == "application/json"
        assert msgspec.json.decode(await response.read(), type=UsageReport) == REPORT


async def test_it_is_compressed_for_who_likes_that() -> None:
    async with asked("gzip") as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert msgspec.json.decode(gzip.decompress(await response.read()), type=UsageReport) == REPORT


@pytest.mark.parametrize(
    ("since", "cursor"),
    [
        ("?since=e1.42", UsageCursor("e1", 42)),
        ("?since=e.1.42", UsageCursor("e.1", 42)),
        ("", None),
        ("?since=", None),
        ("?since=42", None),
        ("?since=.42", None),
        ("?since=e1.", None),
        ("?since=e1.-1", None),
        ("?since=e1.%D9%A3", None),  # a digit in Arabic
        (f"?since=e1.{'9' * 5000}", None),
    ],
)
async def test_a_request_may_name_the_report_that_it_continues_and_anything_else_asks_for_everything(
    since: str, cursor: UsageCursor | None
) -> None:
    found: list[UsageCursor | None] = []

    def report(cursor: UsageCursor | None) -> UsageReport:
        found.append(cursor)
        return REPORT

    async with asked("identity", since=since, report=report) as response:
        assert response.status == 200
    assert found == [cursor]
    assert cursor is None or since == f"?since={cursor}"
