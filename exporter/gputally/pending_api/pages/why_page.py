"""The page `/pending/why`: why the pods of one name wait, with the words of `gputally why`."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlencode

from gputally.files.html_template import html_template
from gputally.model.api.why import WHY_PATH, WhyAnswer, WhyDocument
from gputally.pending_api.pages.page_style import STYLE
from gputally.pending_api.pending_request import WhyRequest
from gputally.pending_api.words.amount_words import pod_words
from gputally.pending_api.words.answer_facts import next_facts, pod_facts, wait_facts
from gputally.pending_api.words.answer_words import (
    OCCUPANT_HEADS,
    OCCUPANT_NUMBERS,
    bound_words,
    headline_words,
    job_preempted_words,
    nodes_words,
    occupant_cells,
    similar_words,
    unaccounted_words,
)
from gputally.pending_api.words.duration_words import duration
from gputally.pending_api.words.first_steps import first_step
from gputally.pending_api.words.quota_words import quota_line
from gputally.pending_api.words.suggestion_words import effect_words, who_words

WHY_PAGE_PATH: Final = "/pending/why"


def why_page(document: WhyDocument, asked: WhyRequest) -> str:
    """The page as HTML."""
    query = {name: value for name, value in asked._asdict().items() if value}
    return html_template("gputally.pending_api", "why.html").render(
        style=STYLE,
        document=document,
        subject=asked.subject,
        headline=lambda answer: headline_words(answer, document.currency),
        facts=lambda answer: list(_facts(answer, document)),
        heads=OCCUPANT_HEADS,
        numbers=OCCUPANT_NUMBERS,
        cells=lambda occupant: occupant_cells(occupant, document.currency),
        who=who_words,
        effect=lambda change: effect_words(change, document.currency),
        bound=bound_words(document) if document.answers else "",
        unaccounted=[unaccounted_words(note) for note in document.unaccounted],
        preempted=list(job_preempted_words(document)),
        quota=quota_line,
        step=lambda lacks: first_step(lacks.reason, has_suggestions=bool(lacks.helps or lacks.job_changes)),
        age=lambda since: duration((document.at - since).total_seconds()),
        json_link=f"{WHY_PATH}?{urlencode(query)}",
    )


def _facts(answer: WhyAnswer, document: WhyDocument) -> Iterator[tuple[str, str]]:
    """The lines of the answer that are no tables, with their headings."""
    yield from pod_facts(answer, document)
    yield from (("Blocked by", each.text) for each in answer.obstacles)
    if nodes := nodes_words(answer):
        yield "Nodes", nodes
    yield from wait_facts(answer, document)
    if similar := similar_words(answer):
        yield "Others like it", similar
    if answer.others_waiting:
        yield "Others waiting", f"{pod_words(answer.others_waiting)} of the same or a higher priority for such GPUs"
    yield from next_facts(answer)
