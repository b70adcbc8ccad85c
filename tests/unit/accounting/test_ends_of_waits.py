"""Pods that wait no longer, whatever their objects still say."""

from dataclasses import replace
from fractions import Fraction

import pytest

from gputally.accounting.fleet.fleet import Fleet
from gputally.accounting.fleet.restore import at_present
from gputally.model.kube.kinds import Kind
from gputally.model.verdicts import FindingKind
from tests.core.manifests import PodForm, us
from tests.core.replay import Replay
from tests.unit.accounting.test_waiting import HOLDER, NODE, WAITS, charged, new_replay

OUTRANKS = replace(WAITS, priority=20, preemption_policy="Never")
"""It has a higher priority than the pod that holds what it needs."""
FAILED = replace(OUTRANKS, phase="Failed", version=5)
ANNOTATED = replace(FAILED, version=6, annotations={"a": "b"})


def findings(replay: Replay, at: float) -> dict[tuple[str, str], int]:
    """After all classes were looked at."""
    replay.scrape(at)
    waits = replay.scrape(at + 6).waits
    assert waits
    return dict(waits.findings)


@pytest.mark.parametrize(
    "told",
    [
        [(21, OUTRANKS), (40, FAILED), (50, ANNOTATED)],
        [(40, FAILED), (50, ANNOTATED)],
        [(20, FAILED), (50, ANNOTATED)],
        [(20, OUTRANKS), (20.5, FAILED), (50, ANNOTATED)],
        [(21, replace(OUTRANKS, deleted=20, grace=0, version=4)), (40, replace(FAILED, deleted=20, grace=0))],
    ],
)
def test_a_pod_that_ended_unbound_waits_no_longer_even_if_its_object_changes(told: list[tuple[float, PodForm]]) -> None:
    replay = new_replay()
    for at, form in told:
        replay.see(form, at=at)
        replay.fleet.waiting.judge(at_us=us(at))

    assert findings(replay, 60) == {}
    assert replay.fleet.waiting.verdicts.of == {}
    assert replay.fleet.waiting.pods() == []


def test_a_pod_that_ended_unbound_is_nobody_after_a_restart_with_an_earlier_clock() -> None:
    replay = new_replay()
    replay.see(replace(OUTRANKS, created=200), at=201)
    replay.scrape(210)
    replay.see(replace(FAILED, created=200), at=220)
    replay.scrape(230)

    replay.restart()
    replay.relist(Kind.NODES, NODE, at=230, since=230)
    replay.relist(Kind.PODS, HOLDER, replace(ANNOTATED, created=200), at=231, since=230)

    assert findings(replay, 240) == {}
    assert replay.fleet.waiting.verdicts.of == {}


def test_findings_count_each_pod_under_its_own_tier() -> None:
    replay = new_replay()
    replay.see(OUTRANKS, replace(OUTRANKS, name="c", tier="gold"), replace(OUTRANKS, name="d", tier="gold"), at=21)

    assert findings(replay, 30) == {("lead", "outranked"): 1, ("gold", "outranked"): 2}
    assert replay.fleet.waiting.findings.by_pod() == dict.fromkeys(
        (f"uid-{name}" for name in (OUTRANKS.name, "c", "d")), ((FindingKind.OUTRANKED, 8),)
    )


def test_a_pod_without_a_wait_in_the_book_is_left_out_of_the_findings() -> None:
    replay = new_replay()
    replay.see(OUTRANKS, replace(OUTRANKS, name="c"), at=21)
    assert findings(replay, 30) == {("lead", "outranked"): 2}

    replay.fleet.waiting.book.forget("uid-c")
    replay.fleet.waiting.verdicts.put("uid-d", *next(iter(replay.fleet.waiting.verdicts.classes)))
    replay.fleet.waiting.advance(us(40))

    now = replay.fleet.waiting.read()
    assert now
    assert now.findings == {("lead", "outranked"): 1}


def restart(replay: Replay, *, at: float, is_on: bool) -> None:
    replay.flush()
    saved = at_present(replay.memory.saved(), now_us=us(at))
    replay.fleet = Fleet(rules=replay.rules, book=None, saved=saved, zero_us=0, explains_waits=is_on)


def rows(replay: Replay) -> list[tuple[float, float | None]]:
    """Begin and end of the waits in the ledger, in seconds."""
    replay.flush()
    waits = [row.wait for row in replay.memory.waits.values() if row.uid == "uid-b"]
    return sorted(
        ((each.from_us - us(0)) / 1e6, None if each.to_us is None else (each.to_us - us(0)) / 1e6) for each in waits
    )


def of_lead(replay: Replay, at: float) -> Fraction:
    return sum((amount for labels, amount in charged(replay, at).items() if labels[0] == "lead"), Fraction())


def test_a_pod_is_not_charged_twice_when_the_feature_was_off_for_a_while() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(120)

    restart(replay, at=121, is_on=False)
    replay.see(replace(WAITS, version=5), at=130)
    assert of_lead(replay, 220) == 2 * (120 - 20)
    restart(replay, at=221, is_on=True)
    replay.see(replace(WAITS, version=6), at=222)

    assert of_lead(replay, 320) == 2 * (120 - 20)
    assert of_lead(replay, 330) == 2 * (120 - 20) + 2 * (330 - 320)
    assert rows(replay) == [(20, 120), (320, None)]


@pytest.mark.parametrize(
    ("scheduled", "end"), [pytest.param(110, 110, id="before it was off"), pytest.param(150, 120, id="while it was")]
)
def test_a_binding_while_the_feature_is_off_ends_the_wait_for_good(scheduled: int, end: int) -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(120)
    restart(replay, at=121, is_on=False)

    replay.see(replace(WAITS, node="n1", scheduled=scheduled, version=5), at=160)

    assert of_lead(replay, 220) == 2 * (end - 20)
    assert rows(replay) == [(20, end)]
    assert not replay.memory.saved().documents.get("waiting")


def test_a_pod_that_is_deleted_while_the_feature_is_off_is_forgotten() -> None:
    replay = new_replay()
    replay.see(WAITS, at=21)
    replay.scrape(120)
    restart(replay, at=121, is_on=False)

    replay.lose(replace(WAITS, version=5), at=160)

    assert of_lead(replay, 220) == 2 * (120 - 20)
    assert not replay.memory.saved().documents.get("waiting")
