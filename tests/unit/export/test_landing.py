import base64
import hashlib
import re

from gputally.export.landing import HEADERS, page
from tests.conftest import Golden


def test_the_landing_page_is_as_recorded(golden: Golden) -> None:
    links = [("/api/v1/bill", "the bill")]

    golden.check("landing.html", page(title="gputally", about="Counts GPU time.", version="1.2.3", links=links))


def test_text_stays_text() -> None:
    evil = "\"'><script>alert(1)</script>"

    assert "<script" not in page(title=evil, about=evil, version=evil, links=[(evil, evil)])


def test_a_path_cannot_leave_its_attribute() -> None:
    assert 'href="/&quot; onclick=&quot;evil()"' in page(
        title="", about="", version="", links=[('/" onclick="evil()', "")]
    )


def test_the_policy_allows_the_style_of_the_page_and_no_other() -> None:
    [style] = re.findall("<style>(.*)</style>", page(title="", about="", version=""), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    assert f"style-src 'sha256-{digest}';" in HEADERS["Content-Security-Policy"]
