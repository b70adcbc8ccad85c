"""The answers of `gputally why` as text: the first line is the answer, the others its evidence."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gputally.answers.answer_words import (
    OCCUPANT_HEADS,
    OCCUPANT_NUMBERS,
    Facts,
    bound_words,
    headline_words,
    job_preempted_words,
    next_facts,
    nodes_words,
    occupant_cells,
    pod_facts,
    similar_words,
    unaccounted_words,
    wait_facts,
)
from gputally.answers.help_words import change_words, effect_words
from gputally.model.api.why import Help, ObstacleText, OccupantPod, WhyAnswer, WhyDocument
from gputally.pending_api.words.amount_words import pod_words
from gputally.why_command.text_lines import headed, headed_if, headed_table, paragraph
from gputally.why_command.workload_text import workload_lines

_MOST_OCCUPANTS: Final = 5
_MOST_OBSTACLES: Final = 3
_MOST_HELPS: Final = 3


def why_lines(document: WhyDocument, *, width: int) -> Iterator[str]:
    """All answers, with an empty line between two."""
    for index, block in enumerate(filter(None, map(list, _blocks(document, width)))):
        if index:
            yield ""
        yield from block


def _blocks(document: WhyDocument, width: int) -> Iterator[Iterable[str]]:
    """What belongs together; a block may have no lines."""
    yield from (_answer(each, document, width) for each in document.answers)
    yield from (workload_lines(each, document, width=width) for each in document.workloads)
    if document.answers:
        yield paragraph(bound_words(document), width) if document.bound else ()
    yield (part for line in job_preempted_words(document) for part in paragraph(line, width))
    yield from (paragraph(unaccounted_words(each), width) for each in document.unaccounted)


def _answer(answer: WhyAnswer, document: WhyDocument, width: int) -> Iterator[str]:
    yield from paragraph(headline_words(answer, document.currency), width)
    yield from _facts(pod_facts(answer, document), width)
    yield from obstacle_lines(answer.obstacles, width=width)
    yield from headed_if("Nodes", nodes_words(answer), width=width)
    yield from occupant_lines("Held by", answer.occupants, document.currency, width=width, more=answer.more_occupants)
    yield from _facts(wait_facts(answer, document), width)
    yield from headed_if("Others", similar := similar_words(answer), width=width)
    yield from others_lines("" if similar else "Others", answer.others_waiting, width=width)
    yield from would_help(answer.helps, document.currency, width=width)
    yield from _facts(next_facts(answer), width)


def _facts(facts: Facts, width: int) -> Iterator[str]:
    """Each behind its heading, which is not repeated."""
    latest = ""
    for head, text in facts:
        yield from headed("" if head == latest else head, text, width=width)
        latest = head


def obstacle_lines(obstacles: Sequence[ObstacleText], *, width: int) -> Iterator[str]:
    """The first obstacles, and how many more there are."""
    for index, each in enumerate(obstacles[:_MOST_OBSTACLES]):
        yield from headed("" if index else "Blocked by", each.text, width=width)
    if len(obstacles) > _MOST_OBSTACLES:
        yield from headed("", f"and {len(obstacles) - _MOST_OBSTACLES:,} more", width=width)


def occupant_lines(
    head: str, occupants: Sequence[OccupantPod], currency: str, *, width: int, more: int = 0
) -> Iterator[str]:
    """A table of the first ones, and how many more there are."""
    if not occupants:
        return
    shown = occupants[:_MOST_OCCUPANTS]
    rows = [[each.upper() for each in OCCUPANT_HEADS], *(occupant_cells(each, currency) for each in shown)]
    used = [column for column in range(len(OCCUPANT_HEADS)) if any(row[column] for row in rows[1:])]
    chosen = [[row[column] for column in used] for row in rows]
    right = frozenset(place for place, column in enumerate(used) if column in OCCUPANT_NUMBERS)
    yield from headed_table(head, chosen, right=right)
    if hidden := len(occupants) - len(shown) + more:
        yield from headed("", f"and {hidden:,} more", width=width)


def others_lines(head: str, others_waiting: int, *, width: int, more: str = "") -> Iterator[str]:
    """How many pods wait already that may be bound first, if any, and what `more` is known of them."""
    if others_waiting:
        verb = "waits" if others_waiting == 1 else "wait"
        yield from headed(
            head,
            f"{pod_words(others_waiting)} of the same or a higher priority {verb} for such GPUs{more}",
            width=width,
        )


def would_help(helps: Sequence[Help], currency: str, *, width: int) -> Iterator[str]:
    """The first suggestions with who can make them and what they would destroy; apart, those that change the job."""
    changing = [each for each in helps if each.changes_job]
    kept = [each for each in helps if not each.changes_job][: _MOST_HELPS - bool(changing)]
    for head, shown in (("Would help", kept), ("Change job", changing[: _MOST_HELPS - len(kept)])):
        for index, each in enumerate(shown):
            text = f"- {change_words(each)}: {effect_words(each, currency)}"
            yield from headed("" if index else head, text, width=width)
