"""The status page in a real browser: what is shown, in both color schemes, by keyboard and to a screen reader."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.demonstrating import demonstrating
from tests.node.browser import Page, browsing

pytestmark = pytest.mark.node

TAB = ("Tab", 9)
CONTRAST = """
(() => {
  const luminance = color => {
    const [r, g, b] = color.map(each => each / 255).map(
      each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const rgb = color => color.match(/[0-9.]+/g).slice(0, 3).map(Number);
  const sheet = document.body.appendChild(document.createElement("div"));
  sheet.style.backgroundColor = "Canvas";
  const paper = luminance(rgb(getComputedStyle(sheet).backgroundColor));
  return ["h1", "p", "caption", "td", "a"].map(name => {
    const ink = luminance(rgb(getComputedStyle(document.querySelector(name)).color));
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  });
})()
"""
"""Contrast of text on the page by the formula of WCAG 2.2, which asks for 4.5."""
FOCUSED = "document.activeElement.getAttribute('href')"
OUTLINED = "getComputedStyle(document.activeElement).outlineStyle"


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    """The status page of an aggregator on a simulated cluster."""
    async with demonstrating() as url, browsing(tmp_path / "chromium") as page:
        await page.open(f"{url}/")
        yield page


async def test_it_loads_nothing_but_itself_and_complains_of_nothing(page: Page) -> None:
    url = await page.evaluate("location.href")

    assert page.requests == [url]
    assert page.messages == []


async def test_it_shows_whether_the_aggregator_is_ready_and_who_has_gpus(page: Page) -> None:
    assert await page.evaluate("document.querySelector('[role=status]').innerText") == "Ready"
    tiers = await page.evaluate(
        "[...document.querySelectorAll('table')].find(each => each.caption.innerText == 'Tiers').rows.length"
    )
    assert tiers > 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_read_in_both_color_schemes(page: Page, scheme: str) -> None:
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    assert await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == "dark")
    assert min(await page.evaluate(CONTRAST)) >= 4.5


async def test_the_keyboard_reaches_every_link_in_order_and_shows_where_it_is(page: Page) -> None:
    links = await page.evaluate("[...document.querySelectorAll('a')].map(each => each.getAttribute('href'))")
    assert "/metrics" in links

    reached = []
    for _ in links:
        await page.press(*TAB)
        reached.append(await page.evaluate(FOCUSED))
        assert await page.evaluate(OUTLINED) != "none"

    assert reached == links


async def test_a_screen_reader_finds_headings_tables_by_name_and_the_state(page: Page) -> None:
    found = await page.accessible()

    assert ("heading", "gputally aggregator") in found
    assert [role for role, _ in found if role == "main"] == ["main"]
    assert {name for role, name in found if role == "table"} >= {"Tiers", "Tenants", "Watches", "Ledger"}
    assert ("columnheader", "Tier") in found
    assert "status" in {role for role, _ in found}
    assert await page.evaluate("document.documentElement.lang") == "en"


async def test_a_narrow_window_scrolls_down_only(page: Page) -> None:
    await page.call("Emulation.setDeviceMetricsOverride", width=360, height=640, deviceScaleFactor=1, mobile=True)

    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
