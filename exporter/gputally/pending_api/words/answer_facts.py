"""The lines of the answer about a pod that are no tables, each with its heading; those without a text are left out."""

from collections.abc import Iterator

from gputally.model.api.why import WhyAnswer, WhyDocument
from gputally.pending_api.words.answer_words import (
    class_words,
    cost_words,
    needs_words,
    preempted_words,
    waits_words,
)
from gputally.pending_api.words.first_steps import first_step
from gputally.pending_api.words.gang_words import gang_words

Facts = Iterator[tuple[str, str]]


def pod_facts(answer: WhyAnswer, document: WhyDocument) -> Facts:
    """What the pod is, and what it needs."""
    return _told(
        ("Preempted", preempted_words(answer, document)),
        ("Needs", needs_words(answer.needs, model=answer.pod.gpu_model) if answer.needs else ""),
        ("Class", class_words(answer)),
        ("Cost", cost_words(answer, document.currency)),
    )


def wait_facts(answer: WhyAnswer, document: WhyDocument) -> Facts:
    """With whom it waits, whom it should precede, and what it waited for before."""
    return _told(
        ("Gang", gang_words(answer.gang, document.currency, now=document.at) if answer.gang else ""),
        *(("Priorities", each.text) for each in answer.priorities),
        ("Waited for", waits_words(answer.waits, document) if answer.waits else ""),
    )


def next_facts(answer: WhyAnswer) -> Facts:
    """What to do first where no change was found, and what the scheduler says."""
    return _told(
        ("First step", first_step(answer.pod.reason, has_suggestions=bool(answer.helps))),
        ("Scheduler", answer.scheduler_message),
    )


def _told(*lines: tuple[str, str]) -> Facts:
    return ((head, text) for head, text in lines if text)
