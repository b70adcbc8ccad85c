"""The page of reports in a real browser without JavaScript: what a form asks for, and what is shown."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.demonstrating import demonstrating
from tests.node.browser import Page, browsing
from tests.node.test_status_page import CONTRAST, OUTLINED, TAB

pytestmark = pytest.mark.node

LABELS = ("Period", "Rows", "Compare with", "Tenant", "Tier", "Time zone")


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    """The cost by tier, of an aggregator on a simulated cluster."""
    async with demonstrating() as url, browsing(tmp_path / "chromium") as page:
        await page.call("Emulation.setScriptExecutionDisabled", value=True)
        await page.open(f"{url}/report?window=all&by=tier")
        yield page


async def test_it_loads_nothing_but_itself_and_complains_of_nothing(page: Page) -> None:
    assert page.requests == [await page.evaluate("location.href")]
    assert page.messages == []


async def test_the_form_keeps_what_was_asked_and_its_button_asks_again(page: Page) -> None:
    assert await page.evaluate("document.querySelector('[name=window]').value") == "all"
    assert await page.evaluate("document.querySelector('[name=by]').value") == "tier"
    await page.evaluate("document.querySelector('[name=by]').value = 'tenant'")
    asked = await page.evaluate("new URLSearchParams(new FormData(document.forms[0])).toString()")
    url = await page.evaluate("location.origin + location.pathname")

    await page.open(f"{url}?{asked}")

    assert await page.evaluate("document.querySelector('caption').innerText") == "Cost by tenant"


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_can_be_read_in_both_color_schemes(page: Page, scheme: str) -> None:
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    assert min(await page.evaluate(CONTRAST)) >= 4.5


async def test_the_keyboard_reaches_every_field_and_link_and_shows_where_it_is(page: Page) -> None:
    fields = await page.evaluate("document.querySelectorAll('input, select, button, a').length")

    for _ in range(fields):
        await page.press(*TAB)
        assert await page.evaluate(OUTLINED) != "none"

    assert await page.evaluate("document.activeElement.getAttribute('href')") == "/"


async def test_a_screen_reader_finds_the_fields_and_tables_by_name(page: Page) -> None:
    found = await page.accessible()

    names = {name for _, name in found}
    assert names >= {*LABELS, "Cost by tier", "Cost by day", "Show"}
    assert "meter" in {role for role, _ in found}
