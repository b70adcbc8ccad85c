"""A page of metrics for Prometheus to scrape."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.prometheus.receiver import listening


class Page:
    """Served at `url`/metrics: its `values` by series, such as `up_to_date{tier="gold"}`."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.url = ""

    async def answer(self, _request: web.Request) -> web.Response:
        """One scrape."""
        text = "".join(f"{series} {value}\n" for series, value in self.values.items())
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})


@asynccontextmanager
async def served() -> AsyncIterator[Page]:
    page = Page()
    application = web.Application()
    application.router.add_get("/metrics", page.answer)
    async with listening(application) as page.url:
        yield page
