"""Who holds what a pod waits for, as far as a reader may know."""

import pytest
from msgspec import Struct
from msgspec.structs import asdict

from gputally.answers.occupants import Rank, limited, occupants
from gputally.answers.viewer import ALL, Viewer
from tests.unit.answers.pending_world import holds, node, world

NOW = world(
    [node("g1"), node("g2")],
    [
        holds("serve", 4, on="g1", tier="serving", priority=800, namespace="api"),
        holds("peer", 3, on="g1"),
        holds("sweep-1", 2, on="g2", tier="low", priority=10, namespace="lab"),
        holds("sweep-2", 1, on="g2", tier="low", priority=10, namespace="lab"),
    ],
)
UIDS = ["uid-sweep-1", "uid-sweep-2", "uid-peer", "uid-serve"]
BATCH = Rank(400, may_preempt=True, name="batch")


def test_a_pod_may_be_preempted_by_one_of_a_higher_priority_alone() -> None:
    found = {each.pod: (each.may_be_preempted, each.why_not) for each in occupants(NOW, UIDS, BATCH, ALL)}

    assert found == {
        "serve": (False, "higher priority"),
        "peer": (False, "same priority"),
        "sweep-1": (True, ""),
        "sweep-2": (True, ""),
    }


def test_a_class_that_never_preempts_is_the_reason() -> None:
    [found] = occupants(NOW, ["uid-sweep-1"], Rank(400, may_preempt=False, name="batch"), ALL)

    assert (found.may_be_preempted, found.why_not) == (False, "batch never preempts")


def test_each_has_its_cost_and_what_its_preemption_would_destroy() -> None:
    [found] = occupants(NOW, ["uid-sweep-1"], BATCH, ALL)

    assert found.is_lost_upper_bound, "no checkpoint of it is known"
    assert found.cost_per_hour == "4.42"
    assert found.lost_gpu_hours == 2 * 3580 / 3600, "it runs since second 20, and the hour is over"
    assert found.lost_cost
    assert float(found.lost_cost) == pytest.approx(2.21 * found.lost_gpu_hours)


def test_a_restricted_reader_sees_of_other_tenants_only_tiers_and_gpus() -> None:
    found = occupants(NOW, UIDS, BATCH, Viewer({"ml"}))

    hidden = [each for each in found if each.pod is None]
    assert [(each.tier, each.gpus, each.why_not) for each in hidden] == [
        ("serving", 4.0, "another tenant's pod"),
        ("low", 3.0, ""),
    ]
    assert {name for each in hidden for name in _known(each)} == {"tier", "gpus", "may_be_preempted", "why_not"}
    assert [(each.pod, each.node) for each in found if each.pod] == [("peer", "g1")], "their own nodes are known"


def test_a_restricted_reader_cannot_tell_priorities_of_others_apart() -> None:
    several = world(
        [node("g1")],
        [
            holds("same", 4, on="g1", priority=400, namespace="lab"),
            holds("above", 3, on="g1", priority=500, namespace="lab"),
        ],
    )
    [hidden] = occupants(several, ["uid-same", "uid-above"], BATCH, Viewer({"ml"}))

    assert (hidden.gpus, hidden.pods, hidden.why_not) == (7.0, None, "another tenant's pod")


def test_pods_without_gpus_are_counted_without_names() -> None:
    [found] = occupants(NOW, ["uid-cpu-1", "uid-cpu-2", "uid-cpu-2"], BATCH, ALL)

    assert (found.tier, found.gpus, found.pods, found.pod) == ("", 0, 2, None)


def test_a_list_has_a_limit_and_counts_the_others() -> None:
    shown, more = limited(occupants(NOW, UIDS, BATCH, ALL) * 20)

    assert (len(shown), more) == (50, 30)


def _known(each: Struct) -> set[str]:
    return {name for name, value in asdict(each).items() if value not in (None, "", False) or name == "why_not"}
