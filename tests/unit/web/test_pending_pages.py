"""`/pending` and `/pending/why` over real sockets."""

import html
import re

from gputally.answers.viewer import ALL
from gputally.answers.why import why_document
from gputally.questions.why import Why
from tests.texts import why_lines
from tests.unit.answers.pending_world import Past
from tests.unit.web.test_pending_routes import read, served, state


async def test_a_page_begins_with_the_reasons_and_escapes_names() -> None:
    async with served() as client, client.get("/pending", params={"namespace": "<b>"}) as answer:
        empty, policy = await answer.text(), answer.headers["Content-Security-Policy"]
    async with served() as client, client.get("/pending") as answer:
        page = await answer.text()

    assert "script" not in policy
    assert "default-src 'none'" in policy
    assert 'value="&lt;b&gt;"' in empty
    assert page.index("Reasons") < page.index("capacity</a>") < page.index("ml/a")
    assert "<script" not in page


async def test_the_page_of_a_pod_says_what_gputally_why_says() -> None:
    async with served() as client:
        _, found = await read(client, "/pending")
        status, page = await read(client, "/pending/why", namespace="ml", pod="a")
        wrong, _ = await read(client, "/pending/why", namespace="ml")

    assert '<a href="/pending/why?namespace=ml&amp;pod=a">ml/a</a>' in found
    assert (status, wrong) == (200, 400)
    text = html.unescape(re.sub(r"<[^>]*>", "", page))
    document = why_document(state(), Why(namespace="ml", pod="a"), ALL, past=Past())
    shown = [line.partition("  ")[2].strip() for line in why_lines(document, width=10_000) if line[:1] not in ("", " ")]
    assert [each for each in shown if each not in text and not each.startswith(("- ", "GPUS"))] == []
    for change in document.answers[0].helps:
        assert change.text in text


async def test_the_form_of_the_page_filters_with_the_fields_that_are_filled_in() -> None:
    submitted = "/pending?namespace=ml&tenant=&tier=&job=&reason="
    async with served() as client:
        async with client.get(submitted) as answer:
            status, page = answer.status, await answer.text()
        async with client.get(f"{submitted}capacity") as answer:
            chosen = await answer.text()

    assert status == 200
    assert "ml/a" in page
    assert "foreign" not in page
    assert "<option selected>capacity</option>" in chosen
    assert " selected" not in page
