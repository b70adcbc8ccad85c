"""Gangs whose PodGroup objects declare their minimum, whenever these are observed."""

from dataclasses import replace

import msgspec
import pytest

from gputally.errors import MalformedObject
from gputally.frameworks.coscheduling import NAMES
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.rules import Rules
from tests.core.gang_pods import (
    COSCHEDULING,
    JOB_SET,
    OWNER,
    POD_GROUPS,
    RAY,
    TRAINING,
    VOLCANO,
    WATCHED,
    cluster,
    group,
    pod,
    running,
    start,
)
from tests.core.manifests import PodForm
from tests.core.replay import Replay

KINDS = [*POD_GROUPS]
OF_VOLCANO = {"scheduling.k8s.io/group-name": "c"}
SIZE = {"pod-group.scheduling.sigs.k8s.io/min-available": "3"}


def members(count: int, kind: Kind = Kind.COSCHEDULING_GROUPS, labels: dict[str, str] | None = None) -> list[PodForm]:
    """Pods that name the group `c` of an API."""
    own = labels or {}
    if kind is Kind.COSCHEDULING_GROUPS:
        own = own | COSCHEDULING
    form = replace(pod("", own), annotations=OF_VOLCANO if kind is Kind.VOLCANO_GROUPS else {})
    form = replace(form, scheduling_group="c" if kind is Kind.CORE_GROUPS else "")
    return [replace(form, name=f"p{i}") for i in range(count)]


def started(
    replay: Replay, pods: list[PodForm], *, before: Object | None = None, kind: Kind = Kind.COSCHEDULING_GROUPS
) -> None:
    """All exist at 5; they start at 10, 20, 30 and so on."""
    if before:
        replay.see_object(kind, before, at=4)
    replay.see(*pods, at=5)
    for i, form in enumerate(pods):
        start(replay, form, 10 + 10 * i)


def waits(start_at: int, until: int | None) -> list[tuple[str, float, float | None]]:
    """What follows the start of the first pod."""
    over: list[tuple[str, float, float | None]] = [] if until is None else [("running", until, None)]
    return [("gang_wait", start_at, until), *over]


@pytest.mark.parametrize("kind", KINDS)
def test_a_gang_is_complete_once_as_many_pods_run_as_its_group_declares(kind: Kind) -> None:
    replay = cluster(WATCHED)
    started(replay, members(4, kind), before=group(kind, "c", 2), kind=kind)

    assert replay.spans("p0")[1:] == waits(10, 20)
    assert replay.spans("p3")[1:] == [("running", 40, None)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_that_is_observed_after_its_pods_corrects_them(kind: Kind) -> None:
    replay, pods = cluster(WATCHED), members(4, kind)
    replay.see(*pods, at=5)
    for i, form in enumerate(pods[:3]):
        start(replay, form, 10 + 10 * i)
    before = replay.spans("p0")[1:]

    replay.see_object(kind, group(kind, "c", 3), at=50)

    without = [("running", 10, None)] if kind is Kind.VOLCANO_GROUPS else waits(10, None)
    assert (before, replay.spans("p0")[1:]) == (without, waits(10, 30))
    replay.scrape(60)


def test_a_group_that_was_created_late_counts_since_then() -> None:
    replay, pods = cluster(WATCHED), members(3)
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    replay.see_object(Kind.COSCHEDULING_GROUPS, group(Kind.COSCHEDULING_GROUPS, "c", 1, created=40), at=41)

    assert replay.spans("p0")[1:] == waits(10, 40)


def test_a_lower_minimum_completes_a_gang_from_then_on_and_a_higher_one_does_not_undo_that() -> None:
    kind, replay, pods = Kind.COSCHEDULING_GROUPS, cluster(WATCHED), members(3)
    replay.see_object(kind, group(kind, "c", 3), at=4)
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    start(replay, pods[1], 20)
    assert replay.spans("p0")[1:] == waits(10, None)
    replay.see_object(kind, group(kind, "c", 2), at=50)
    assert replay.spans("p0")[1:] == waits(10, 50)
    replay.see_object(kind, group(kind, "c", 3), at=60)
    assert replay.spans("p0")[1:] == waits(10, 50)
    replay.scrape(70)


def test_a_higher_minimum_is_needed_by_a_gang_that_is_not_complete() -> None:
    kind, replay, pods = Kind.COSCHEDULING_GROUPS, cluster(WATCHED), members(4)
    replay.see_object(kind, group(kind, "c", 2), at=4)
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    replay.see_object(kind, group(kind, "c", 3), at=15)
    start(replay, pods[1], 20)
    start(replay, pods[2], 30)

    assert replay.spans("p0")[1:] == waits(10, 30)


@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_without_its_group_a_gang_is_what_it_was_before(kind: Kind, *, is_listed: bool) -> None:
    replay, pods = cluster(WATCHED), members(3, kind)
    replay.see_object(kind, group(kind, "c", 3), at=4)
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)

    if is_listed:
        replay.relist_objects(kind, at=50)
    else:
        replay.lose_object(kind, group(kind, "c", 3), at=50)

    until = 50 if kind is Kind.VOLCANO_GROUPS else None  # of which nobody knows that it is a gang
    assert replay.spans("p0")[1:] == waits(10, until)
    replay.scrape(60)


def test_a_new_process_knows_the_minimum_and_notices_that_the_group_is_gone() -> None:
    kind, replay, pods = Kind.COSCHEDULING_GROUPS, cluster(WATCHED), members(4)
    replay.see_object(kind, group(kind, "c", 2), at=4)
    replay.see(*pods, at=5)
    start(replay, pods[0], 10)
    replay.scrape(12)
    replay.restart()
    start(replay, pods[1], 20)
    assert replay.spans("p0")[1:] == waits(10, 20)

    replay, pods = cluster(WATCHED), members(2)
    started(replay, pods[:1], before=group(kind, "c", 1))
    replay.see(pods[1], at=11)
    replay.scrape(12)
    replay.restart()
    replay.relist_objects(kind, at=30)
    assert replay.spans("p0")[1:] == [("running", 10, None)]


def test_a_replaced_group_of_the_same_name_survives_the_deletion_of_the_old_one() -> None:
    kind, replay, pods = Kind.COSCHEDULING_GROUPS, cluster(WATCHED), members(3)
    replay.see_object(kind, group(kind, "c", 3, uid="old"), at=4)
    replay.relist_objects(kind, group(kind, "c", 2, uid="new"), at=4)
    started(replay, pods)

    assert replay.spans("p0")[1:] == waits(10, 20)


@pytest.mark.parametrize("label", NAMES)
def test_older_labels_name_a_group_too(label: str) -> None:
    kind, replay = Kind.COSCHEDULING_GROUPS, cluster(WATCHED)
    pods = [replace(each, labels={label: "c"}) for each in members(3)]
    started(replay, pods, before=group(kind, "c", 2))

    assert replay.spans("p0")[1:] == waits(10, 20)


def test_a_name_that_no_object_can_have_names_no_group() -> None:
    kind, replay = Kind.VOLCANO_GROUPS, cluster(WATCHED)
    pods = [replace(each, annotations={"scheduling.k8s.io/group-name": "c" * 254}) for each in members(2, kind)]
    started(replay, pods, kind=kind)

    assert not replay.fleet.pods.gangs.known


def test_the_object_precedes_labels_and_jobs() -> None:
    kind, replay = Kind.COSCHEDULING_GROUPS, cluster(WATCHED)
    started(replay, members(4, labels=SIZE), before=group(kind, "c", 2))

    assert replay.spans("p0")[1:] == waits(10, 20)


@pytest.mark.parametrize("labels", [TRAINING, VOLCANO, JOB_SET])
def test_the_gang_of_a_framework_has_the_minimum_of_the_group_that_its_pods_name(labels: dict[str, str]) -> None:
    kind, replay = Kind.VOLCANO_GROUPS, cluster(WATCHED)
    started(replay, members(4, kind, labels), before=group(kind, "c", 3), kind=kind)

    assert replay.spans("p0")[1:] == waits(10, 30)


def test_a_gang_of_several_groups_needs_the_sum() -> None:
    kind, replay = Kind.VOLCANO_GROUPS, cluster(WATCHED)
    pods = members(4, kind, dict(JOB_SET))
    pods[3] = replace(pods[3], annotations={"scheduling.volcano.sh/group-name": "d"})
    replay.see_object(kind, group(kind, "d", 1, ownerReferences=[VCJOB]), at=4)
    started(replay, pods, before=group(kind, "c", 2), kind=kind)

    assert replay.spans("p0")[1:] == waits(10, 30)


VCJOB = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "v", "uid": "v"}


def test_pods_without_gpus_are_not_waited_for() -> None:
    kind, replay = Kind.VOLCANO_GROUPS, cluster(WATCHED)
    started(replay, members(3, kind, dict(RAY)), before=group(kind, "c", 4), kind=kind)  # and a head without GPUs

    assert replay.spans("p0")[1:] == waits(10, 30)


@pytest.mark.parametrize(("owners", "until"), [((), 30), ((VCJOB,), None)])
def test_one_pod_is_enough_if_the_group_of_a_volcano_job_says_so(owners: tuple[object, ...], until: int | None) -> None:
    kind, replay = Kind.VOLCANO_GROUPS, cluster(WATCHED)
    alone = group(kind, "c", 1, ownerReferences=[*owners])
    started(replay, members(3, kind, dict(VOLCANO)), before=alone, kind=kind)

    assert replay.spans("p0")[1:] == (waits(10, until) if until else [("running", 10, None)])


def test_groups_that_volcano_creates_for_other_workloads_say_nothing() -> None:
    kind, replay = Kind.VOLCANO_GROUPS, cluster(WATCHED)
    pods = [replace(each, annotations={"scheduling.k8s.io/group-name": "podgroup-1"}) for each in members(2, kind)]
    started(replay, pods, before=group(kind, "podgroup-1", 2), kind=kind)

    assert replay.spans("p0")[1:] == [("running", 10, None)]


def test_pods_of_a_job_that_name_a_group_are_its_gang() -> None:
    kind, replay = Kind.VOLCANO_GROUPS, cluster(WATCHED)
    labels = {"batch.kubernetes.io/job-name": "b", "batch.kubernetes.io/controller-uid": "job"}
    pods = [replace(each, owners=(OWNER,)) for each in members(3, kind, labels)]
    started(replay, pods, before=group(kind, "c", 2), kind=kind)

    assert replay.spans("p0")[1:] == waits(10, 20)


def test_nothing_is_read_unless_it_is_watched() -> None:
    kind, replay = Kind.VOLCANO_GROUPS, cluster(Rules())
    started(replay, members(2, kind), kind=kind)

    assert replay.spans("p0")[1:] == [("running", 10, None)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("least", [-1, 100_001, 2**63 - 1])
def test_an_impossible_minimum_is_refused_and_changes_nothing(kind: Kind, least: int) -> None:
    replay = cluster(WATCHED)
    replay.see_object(kind, group(kind, "c", 2), at=3)
    with pytest.raises(MalformedObject, match=f"ml/c needs {least} pods"):
        replay.see_object(kind, group(kind, "c", least), at=4)
    started(replay, members(3, kind))

    assert replay.spans("p0")[1:] == waits(10, 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("least", ["8", 1.5, [], {}, True])
def test_a_minimum_of_another_type_cannot_be_decoded(kind: Kind, least: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        group(kind, "c", least)


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_without_a_minimum_says_nothing_but_basic_says_that_it_is_no_gang(kind: Kind) -> None:
    replay, pods = cluster(WATCHED), members(3, kind)
    replay.see_object(kind, group(kind, "c", None), at=4)
    started(replay, pods, kind=kind)

    is_gang = kind is Kind.COSCHEDULING_GROUPS
    assert replay.spans("p0")[1:] == (waits(10, 30) if is_gang else [("running", 10, None)])


def test_the_groups_of_a_namespace_are_not_those_of_another() -> None:
    kind, replay, pods = Kind.COSCHEDULING_GROUPS, cluster(WATCHED), members(3)
    other = group(kind, "c", 1, namespace="x")
    started(replay, pods, before=other)

    assert replay.spans("p0")[1:] == waits(10, 30)


def test_a_partial_gang_needs_what_its_group_declares() -> None:
    kind, replay, pods = Kind.COSCHEDULING_GROUPS, cluster(WATCHED), members(8)
    replay.see_object(kind, group(kind, "c", 8), at=4)
    replay.see(*pods, at=5)
    replay.see(*(running(each, 10) for each in pods[:6]), at=10)
    read = replay.fleet.waiting.situations.partial_gangs.gangs.read

    assert [(each.bound, each.needed) for each in read().values()] == [(6, 8)]
    replay.see_object(kind, group(kind, "c", 6), at=20)
    assert not read()
