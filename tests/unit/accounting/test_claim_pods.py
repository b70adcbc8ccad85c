"""Pods whose devices come only from ResourceClaims are counted, until they end."""

from typing import Any

import pytest

from gputally.accounting.claim_pods import ClaimPods
from gputally.accounting.relevant_pods import is_watched
from gputally.accounting.snapshot import publish
from gputally.model.kube import Kind, Pod
from gputally.model.observation import Deleted, RelistFinished, RelistStarted, Upserted
from gputally.model.rules import Rules
from tests.core.manifests import PodForm, as_pod, us
from tests.core.replay import Replay

CLAIMS = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]


def claiming(name: str = "pod-1", **form: Any) -> Pod:  # noqa: ANN401 - any field of a form
    fields: dict[str, Any] = {"node": "n1", "gpus": 0, "phase": "Running", "created": 1, "scheduled": 2}
    manifest = PodForm(name=name, uid=name, **fields | form).manifest()
    return as_pod({**manifest, "spec": {**manifest["spec"], "resourceClaims": CLAIMS}})


def counted(*pods: Pod) -> int:
    part = ClaimPods(Rules())
    for pod in pods:
        part.seen(pod, at_us=us(5))
    return len(part)


@pytest.mark.parametrize(
    ("pod", "count"),
    [
        (claiming(), 1),
        (claiming(phase="Pending"), 1),  # bound: its images are pulled
        (claiming(node="", scheduled=None, phase="Pending"), 0),
        (claiming(phase="Succeeded"), 0),
        (claiming(phase="Failed"), 0),
        (claiming(gpus=1), 0),  # accounted by its request, such as of an extended resource that DRA serves
        (as_pod(PodForm(name="a", uid="a", node="n1", gpus=0, phase="Running", created=1, scheduled=2).manifest()), 0),
    ],
)
def test_bound_pods_with_claims_only_are_counted(pod: Pod, count: int) -> None:
    assert counted(pod) == count


def test_a_pod_is_counted_once_and_until_it_ends() -> None:
    assert counted(claiming(), claiming(), claiming("pod-2")) == 2
    assert counted(claiming(), claiming(phase="Succeeded")) == 0


def test_such_pods_are_watched() -> None:
    assert is_watched(claiming(), Rules())
    assert is_watched(claiming(phase="Succeeded"), Rules())


def test_the_fleet_counts_them_and_accounts_nothing() -> None:
    replay = Replay()
    for name in ("pod-1", "pod-2", "pod-3"):
        replay.fleet.apply(Upserted(kind=Kind.PODS, object=claiming(name), at_us=us(5), since_us=us(5)))
    replay.fleet.apply(Deleted(kind=Kind.PODS, object=claiming("pod-1"), at_us=us(6), since_us=us(6)))

    snapshot = publish(replay.fleet, now_us=us(10), ledger=None)

    assert (snapshot.claim_pods, snapshot.pods) == (2, 0)


def test_a_pod_that_is_missing_from_a_list_is_counted_no_more() -> None:
    replay = Replay()
    for name in ("pod-1", "pod-2"):
        replay.fleet.apply(Upserted(kind=Kind.PODS, object=claiming(name), at_us=us(5), since_us=us(5)))
    replay.fleet.apply(RelistStarted(kind=Kind.PODS, at_us=us(7)))
    replay.fleet.apply(Upserted(kind=Kind.PODS, object=claiming("pod-2"), at_us=us(7), since_us=us(5)))
    replay.fleet.apply(RelistFinished(kind=Kind.PODS, version="9", at_us=us(7), since_us=us(5), as_of_us=us(7)))

    assert len(replay.fleet.claim_pods) == 1


def test_the_next_process_knows_them() -> None:
    part, later = ClaimPods(Rules()), ClaimPods(Rules())
    for pod in (claiming(), claiming("pod-2"), claiming("pod-2", phase="Failed")):
        part.seen(pod, at_us=us(5))

    later.restore([document for document in part.drain().values() if document], at_us=us(9))

    assert len(later) == 1
    assert part.drain() == {}
