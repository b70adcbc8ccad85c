"""A pod loses its GPUs, and its replacement preempts others: the records are linked."""

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gputally.model.disruptions import Cause, Preemption, Preemptor, VictimRecord
from gputally.reports.disruptions import CascadeLink, cascade_links
from tests.contract.records import DISRUPTION, us
from tests.core.manifests import NodeForm, PodForm, preempted_event
from tests.core.replay import Replay


class Lost(NamedTuple):
    """A victim, the pod that preempted it, and the pod that replaced it."""

    uid: str
    by: str | None
    replacement: str
    at: int
    cause: Cause = Cause.PREEMPTION


def victim(each: Lost) -> VictimRecord:
    preemptor = Preemptor(uid=each.by, namespace="ml", name=each.by) if each.by else None
    by = Preemption(preemptor=preemptor, preemptor_tier="high") if each.cause is Cause.PREEMPTION else None
    values = {name: getattr(DISRUPTION, name) for name in VictimRecord.__struct_fields__}
    lost = {"victim_uid": each.uid, "decided_us": us(each.at), "replacement_uid": each.replacement}
    return VictimRecord(**values | lost | {"cause": each.cause, "by": by})


def links(found: Sequence[Lost]) -> dict[str, CascadeLink]:
    return cascade_links(map(victim, found))


def test_batch_that_lost_to_training_takes_from_interactive() -> None:
    found = links([Lost("batch", "training", "batch-2", 0), Lost("notebook", "batch-2", "", 10)])

    assert found == {"batch": CascadeLink(None, "batch"), "notebook": CascadeLink("batch", "batch")}


def test_a_cascade_names_its_first_preemption_in_all_of_its_records() -> None:
    chain = [Lost("a", "x", "a-2", 0), Lost("b", "a-2", "b-2", 5), Lost("c", "b-2", "", 5), Lost("d", "b-2", "", 9)]

    assert {uid: each.first for uid, each in links(chain).items()} == dict.fromkeys("abcd", "a")
    assert links(chain)["d"].follows == links(chain)["c"].follows == "b"


def test_preemptions_by_other_pods_are_not_linked() -> None:
    assert links([Lost("a", "x", "a-2", 0), Lost("b", "y", "", 10), Lost("c", None, "", 20)]) == {}


def test_a_reclaimed_machine_may_begin_a_cascade_and_a_deletion_by_its_owner_may_not() -> None:
    later = Lost("b", "a-2", "", 10)

    assert links([Lost("a", None, "a-2", 0, Cause.SPOT_RECLAIM), later])["b"].follows == "a"
    assert links([Lost("a", None, "a-2", 0, Cause.DELETION), later]) == {}


def test_a_preemption_before_the_disruption_that_it_replaces_is_not_linked() -> None:
    assert links([Lost("a", "x", "a-2", 20), Lost("b", "a-2", "", 10)]) == {}


def test_events_of_the_scheduler_become_a_cascade() -> None:
    """Batch loses to training at 30 and takes from interactive at 40."""
    replay = Replay()
    replay.see(NodeForm(), at=0)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "etl", "uid": "uid-etl", "controller": True}
    batch = PodForm(name="batch", uid="batch", tier="batch", node="n1", scheduled=5, started=6, owners=(owner,))
    notebook = PodForm(name="notebook", uid="notebook", tier="interactive", node="n1", scheduled=5, started=6)
    training = PodForm(name="training", uid="training", tier="training", created=29)
    again = PodForm(name="again", uid="again", tier="batch", created=32, owners=(owner,))
    replay.see(batch, notebook, training, at=29)
    lose(replay, batch, by=training, at=30)
    replay.see(again, at=32)
    lose(replay, notebook, by=again, at=40)
    replay.see(changed(again, node="n1", scheduled=45, started=46, version=2), at=46)
    replay.scrape(100)

    found = replay.fleet.disrupted.victims.known.values()
    assert cascade_links(found)["notebook"] == CascadeLink("batch", "batch")


def lose(replay: Replay, victim: PodForm, *, by: PodForm, at: int) -> None:
    """The scheduler preempts the victim, which ends two seconds later."""
    stopping = changed(victim, marked=at, deleted=at, version=2)
    replay.see(stopping, at=at)
    replay.see_event(preempted_event(victim, by=by), at=at)
    replay.lose(changed(stopping, finished=at + 2, phase="Failed", version=3), at=at + 3)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Lost], dict[str, str]]:
    """Victims in the order of time, and which of them were preempted by the replacement of an earlier one."""
    found: list[Lost] = []
    follows: dict[str, str] = {}
    for number in range(draw(st.integers(1, 8))):
        at = (found[-1].at if found else 0) + draw(st.integers(0, 3))
        before = draw(st.sampled_from([None, *found]))
        found.append(Lost(f"v{number}", before.replacement if before else f"new-{number}", f"r{number}", at))
        if before:
            follows[f"v{number}"] = before.uid
    return found, follows


@given(histories())
def test_links_are_those_of_the_history(history: tuple[list[Lost], dict[str, str]]) -> None:
    found, follows = history

    first: dict[str, str] = {}
    for each in found:
        first[each.uid] = first[follows[each.uid]] if each.uid in follows else each.uid
    linked = {*follows, *follows.values()}
    assert links(found) == {uid: CascadeLink(follows.get(uid), first[uid]) for uid in linked}
