"""A machine that registers as a new Node has the same GPUs, so the labels of the old Node still hold."""

from dataclasses import replace

from gputally.accounting.totals.total import Total
from tests.core.replay import Replay
from tests.unit.accounting.test_node_labels import BARE, HOUR, LABELLED, POD, by_model, with_books


def test_a_machine_that_registers_anew_has_the_labels_that_it_had() -> None:
    """Its pods run on, and what discovers its GPUs has yet to write their labels."""
    replay = with_books()
    replay.see(replace(LABELLED, machine="4c4c4544"), POD, at=2)
    replay.lose(replace(LABELLED, machine="4c4c4544"), at=100)
    replay.see(replace(BARE, uid="uid-again", created=105, machine="4c4c4544"), at=105)

    assert replay.gpu_seconds(202) == {("none", "ml", "A100", "running"): 200}
    assert replay.gpu_seconds(202, Total.UNPRICED) == {}


def test_a_crash_before_the_deletion_of_the_old_node_is_observed_counts_its_pods_once() -> None:
    """A relist shows the new Node first."""
    replay = with_books()
    replay.see(replace(LABELLED, machine="4c4c4544"), POD, at=2)
    replay.see(replace(BARE, uid="uid-again", created=105, machine="4c4c4544"), at=115, since=100)
    replay.flush()
    replay.restart()
    replay.lose(replace(LABELLED, machine="4c4c4544"), at=116, since=100)

    assert replay.gpu_seconds(202) == {("none", "ml", "A100", "running"): 200}
    assert replay.capacity(202)["allocated"] == 200


def test_what_a_machine_had_lost_lapses_also_while_it_registers_anew() -> None:
    replay = Replay()
    replay.see(replace(LABELLED, machine="4c4c4544"), POD, at=2)
    replay.see(replace(BARE, machine="4c4c4544"), at=100)
    replay.lose(replace(BARE, machine="4c4c4544"), at=50 + HOUR)
    replay.see(replace(BARE, uid="uid-again", created=105 + HOUR, machine="4c4c4544"), at=105 + HOUR)

    assert by_model(replay, 110 + HOUR) == {"A100": 98 + HOUR, "unknown": 40}


def test_what_is_told_first_after_a_machine_registered_anew_held_before() -> None:
    replay = Replay()
    replay.see(replace(BARE, machine="4c4c4544"), POD, at=2)
    replay.lose(replace(BARE, machine="4c4c4544"), at=30)
    replay.see(replace(BARE, uid="uid-again", created=35, machine="4c4c4544"), at=35)
    replay.see(replace(LABELLED, uid="uid-again", created=35, machine="4c4c4544"), at=62)

    assert replay.gpu_seconds(62) == {("none", "ml", "A100", "running"): 60}
