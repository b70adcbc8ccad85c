"""The links from dashboards to the aggregator: it serves each of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from yarl import URL

from gputally.answers.at_risk import FILTERS
from gputally.model.api.paths import AT_RISK_PATH
from monitoring.config import read
from monitoring.generate import generated
from tests.fakes.tenants_ledger import RED, tenants_ledger
from tests.unit.web.test_report_route import served

_LINK: Final = re.compile(r'"url": "(http://(?:[^"\\]|\\.)*)"')
_MACROS: Final = {
    "${__from:date:iso}": "1970-01-01T00:20:00.000Z",
    "${__to:date:iso}": "2070-01-02T00:00:00.000Z",
    r"${__data.fields[\"Tenant\"]}": RED,
    r"${__data.fields[\"Tier\"]}": "low",
    r"${__data.fields[\"Cause\"]}": "preemption",
}
"""What Grafana replaces in them. The range ends after what the ledger has, as one that ends now."""


def _links() -> Iterator[URL]:
    for name, text in generated(read()).items():
        for link in _LINK.findall(text) if name.startswith("dashboards/") else ():
            address = link
            for macro, value in _MACROS.items():
                address = address.replace(macro, value)
            yield URL(address).relative()


LINKS: Final = sorted(set(_links()))


def test_all_macros_of_links_are_known() -> None:
    assert len(LINKS) > 5
    assert not [link for link in LINKS if "$" in str(link)]


@pytest.mark.parametrize("link", [each for each in LINKS if each.path != AT_RISK_PATH], ids=str)
async def test_a_link_leads_to_a_page_for_browsers(link: URL, tmp_path: Path) -> None:
    async with served(tenants_ledger(tmp_path)) as client, client.get(link) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type in ("text/plain", "text/html")


def test_links_to_work_at_risk_have_only_its_parameters() -> None:
    [link] = [each for each in LINKS if each.path == AT_RISK_PATH]

    assert link.query.keys() <= set(FILTERS)
