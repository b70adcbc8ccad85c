import base64
import hashlib
import re

from gputally.formatting.html_pages import PAGE_HEADERS
from gputally.web.server import StatusTable, status_page
from tests.conftest import Golden


def test_the_page_is_as_recorded(golden: Golden) -> None:
    found = status_page(
        title="gputally",
        about="Counts GPU time.",
        version="1.2.3",
        sections=[
            StatusTable("Tiers", ("Tier", "GPUs"), [("high", "6"), ("low", "2")], numbers=True),
            StatusTable("Agents", ("Agents", "Measured up to"), []),
        ],
        links=[("/api/v1/bill", "the bill")],
    )

    golden.check("status.html", found)


def test_what_it_waits_for_is_announced() -> None:
    found = status_page(title="", about="", version="", missing=["watch pods: no complete list yet"])

    assert '<div class="state waiting" role="status"><p>Not ready:</p>' in found
    assert "<li>watch pods: no complete list yet</li>" in found
    assert 'role="status">Ready<' not in found


def test_text_stays_text() -> None:
    evil = "\"'><script>alert(1)</script>"
    section = StatusTable(evil, (evil,), [(evil,)])

    found = status_page(title=evil, about=evil, version=evil, links=[(evil, evil)], missing=[evil], sections=[section])

    assert "<script" not in found


def test_a_path_cannot_leave_its_attribute() -> None:
    assert 'href="/&quot; onclick=&quot;evil()"' in status_page(
        title="", about="", version="", links=[('/" onclick="evil()', "")]
    )


def test_the_policy_allows_the_style_of_the_page_and_no_other() -> None:
    [style] = re.findall("<style>(.*)</style>", status_page(title="", about="", version=""), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    assert f"style-src 'sha256-{digest}';" in PAGE_HEADERS["Content-Security-Policy"]
