"""Panels of dashboards on a real Prometheus answer the questions of tests/surfaces as the other surfaces do.

`increase()` extrapolates to the ends of the time range: a panel may deviate by one percent, and by what a group gets
between two scrapes.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp
import pytest
import pytest_asyncio

from gputally.exposition.text_format import END
from gputally.model.units import US_PER_SECOND
from hack.pictures.variables import Window
from hack.prometheus import Prometheus
from tests.fakes.stepped import SteppedCluster
from tests.monitoring_e2e.panels import Boards
from tests.prometheus.server import Configuration, PrometheusServer
from tests.prometheus.tools import create_blocks
from tests.surfaces.answer import Key
from tests.surfaces.book import Book
from tests.surfaces.questions import QUESTIONS
from tests.surfaces.scenario_books import Steps, scenario

pytestmark = pytest.mark.e2e

SCRAPE_S: Final = 120
SHARE: Final = Decimal("0.01")


class Shown(NamedTuple):
    """The column of a panel, by labels in the order of the question's key; amounts of `bit` are shown by chance."""

    question: str
    board: str
    panel: str
    column: str
    by: tuple[str, ...]
    bit: Decimal = Decimal("0.035")
    """GPU-hours or units of the currency between two scrapes."""


VICTIM: Final = ("victim_tier", "victim_tenant")
SHOWN: Final = (
    Shown("GPU-hours by tenant", "tenants", "Tenants", "GPU-hours", ("tenant",)),
    Shown("cost by tenant", "tenants", "Tenants", "Cost", ("tenant",), Decimal("0.08")),
    Shown("GPU-hours lost to preemptions, by tier and tenant", "preemption", "Who paid", "Lost GPU-hours", VICTIM),
    Shown("preempted pods by tier and tenant", "preemption", "Who paid", "Preemptions", VICTIM),
    Shown("preempted pods by tier and tenant", "tiers", "Preemptions by tenant", "", VICTIM),
    Shown(
        "preempted pods by tier of victim and preemptor",
        "tiers",
        "Preemptions by preemptor and victim",
        "Preemptions",
        ("victim_tier", "preemptor_tier"),
    ),
    Shown(
        "pending GPU-hours by tier, cause and occupying tier",
        "pending",
        "Wait time by tier, cause and occupying tier",
        "",
        ("tier", "cause", "occupying_tier"),
    ),
    Shown(
        "pods that wait now, by tier and tenant",
        "pending",
        "Pending pods by tier and tenant",
        "Pods",
        ("tier", "tenant"),
    ),
    Shown("cost of the capacity", "fleet", "Total cost", "", (), Decimal("0.6")),
    Shown("cost of unallocated capacity", "fleet", "Total unallocated cost", "", (), Decimal("0.6")),
)


class Scraped(NamedTuple):
    """A book, and Prometheus with the scrapes of its whole time."""

    book: Book
    api: Prometheus
    window: Window


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scraped(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scraped]:
    """Some hours of scenario s1 with its preemptions of the morning."""
    scratch = tmp_path_factory.mktemp("surfaces")
    samples = scratch / "samples"
    steps = Steps(SCRAPE_S * US_PER_SECOND, partial(_append, samples), zero_s=SCRAPE_S)
    async with AsyncExitStack() as stack:
        book = await stack.enter_async_context(scenario(scratch, name="s1", hours=3, seed=2, steps=steps))
        with samples.open("ab") as out:
            out.write(END)
        await asyncio.to_thread(create_blocks, samples, scratch / "data")
        server = await stack.enter_async_context(PrometheusServer(scratch, Configuration(), data=scratch / "data"))
        start_s, end_s = book.start_us / US_PER_SECOND, book.now_us / US_PER_SECOND
        yield Scraped(book, server.api, Window(start_s, end_s, scrape=SCRAPE_S))


async def _append(path: Path, running: SteppedCluster) -> None:
    """A scrape, with the simulated time."""
    async with aiohttp.ClientSession() as session, session.get(f"{running.url}/metrics") as response:
        text = await response.read()
    moment = b" %.3f\n" % (running.now_us() / US_PER_SECOND)
    samples = [line for line in text.splitlines() if line and not line.startswith(b"#")]
    with path.open("ab") as out:
        out.write(moment.join((*samples, b"up 1", b"")))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("shown", SHOWN, ids=lambda each: f"{each.board}: {each.panel} {each.column}".strip())
async def test_a_panel_answers_as_the_other_surfaces(shown: Shown, scraped: Scraped, dashboards: Boards) -> None:
    [question] = [each for each in QUESTIONS if each.name == shown.question]
    expected = (await next(iter(question.surfaces.values()))(scraped.book)).amounts

    found = await asyncio.to_thread(_values, shown, scraped, dashboards)

    assert expected
    assert _deviations(found, expected, shown.bit) == {}


def _values(shown: Shown, scraped: Scraped, dashboards: Boards) -> Mapping[Key, Decimal]:
    frame = dashboards.ask(scraped.api, shown.board, shown.panel, scraped.window, column=shown.column)
    return {tuple(each.labels[label] for label in shown.by): Decimal(each.last) for each in frame.series}


def _deviations(found: Mapping[Key, Decimal], expected: Mapping[Key, Decimal], bit: Decimal) -> Mapping[Key, Decimal]:
    none = Decimal()
    more = {key: found.get(key, none) - expected.get(key, none) for key in found.keys() | expected.keys()}
    return {key: each for key, each in more.items() if abs(each) > bit + SHARE * expected.get(key, none)}
