"""The answer about a bound pod says which of its GPUs are not accounted, also if it is otherwise unknown."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.answers.viewer import ALL, Viewer
from gputally.answers.why import NoSuchPods, why_document
from gputally.model.api.why import WhyDocument
from gputally.questions.why import Why
from gputally.web.pending_pages import why_page
from tests.core.manifests import PodForm
from tests.texts import why_lines
from tests.unit.answers.pending_world import Past, holds, node, world

CLAIMING = replace(holds("claiming", 0, on="g1"), claims=("gpu",))
PARTLY = holds("partly", 10, on="g1")


def asked(now: PendingNow, pod: str, *, viewer: Viewer = ALL, namespace: str = "ml") -> WhyDocument:
    return why_document(now, Why(namespace=namespace, pod=pod), viewer, past=Past())


def small(*pods: PodForm) -> PendingNow:
    return world([node("g1")], pods)


def text(document: WhyDocument) -> str:
    return " ".join(" ".join(why_lines(document, width=100)).split())


def test_a_pod_with_claims_only_has_no_answer_but_a_note() -> None:
    found = asked(small(CLAIMING), "claiming")

    assert found.answers == []
    assert text(found) == (
        "ml/claiming on g1 asks for devices that are not accounted: the devices are from a ResourceClaim, and claims "
        "are not read (claim)."
    )
    assert asked(small(CLAIMING), "claiming", namespace="").unaccounted == found.unaccounted


def test_a_pod_that_is_accounted_in_part_has_an_answer_and_a_note() -> None:
    found = asked(small(PARTLY), "partly")

    assert len(found.answers) == 1
    assert text(found).endswith(
        "ml/partly on g1 asks for 2 GPUs (nvidia.com/gpu) that are not accounted: the node has never offered all the "
        "GPUs that are requested (not_offered)."
    )
    [note] = found.unaccounted
    assert (note.reason, note.resources, note.gpus, note.node) == ("not_offered", ["nvidia.com/gpu"], 2.0, "g1")
    assert "asks for 2 GPUs (nvidia.com/gpu)" in why_page(found, Why(namespace="ml", pod="partly"))


def test_other_pods_have_no_note() -> None:
    now = small(holds("a", 1, on="g1"), CLAIMING, PARTLY)

    assert asked(now, "a").unaccounted == []
    with pytest.raises(NoSuchPods):
        asked(now, "claiming", namespace="other")
    with pytest.raises(NoSuchPods):
        asked(now, "unheard")


def test_the_pods_of_a_job_have_notes() -> None:
    now = small(PARTLY, holds("a", 1, on="g1"))
    records = {uid: changed(each, job_kind="Job", job="train") for uid, each in now.records.items()}
    found = why_document(now._replace(records=records), Why(namespace="ml", job="train"), ALL, past=Past())

    assert [note.pod for note in found.unaccounted] == ["partly"]


def test_a_restricted_user_sees_notes_of_accounted_pods_of_own_tenants_without_nodes() -> None:
    now = small(CLAIMING, PARTLY)

    [note] = asked(now, "partly", viewer=Viewer({"ml"})).unaccounted
    assert note.node is None
    for pod, tenant in (("partly", "other"), ("claiming", "other"), ("claiming", "ml")):
        with pytest.raises(NoSuchPods):
            asked(now, pod, viewer=Viewer({tenant}))
