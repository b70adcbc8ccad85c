"""Which waiting pods others should not precede, and what a reader may know of that."""

import json

import msgspec

from gputally.accounting.fleet.pending_now import PendingNow
from gputally.answers.pending_list import pending_list
from gputally.answers.viewer import ALL, Viewer
from gputally.model.api.pending import PendingDocument
from gputally.model.verdicts import FindingKind
from gputally.questions.pending import Pending
from gputally.web.pending_pages import pending_page
from tests.texts import pending_lines
from tests.unit.answers.pending_world import holds, node, waits, world

FIRST_POD = Pending(limit=1)
NAMED = {
    "a": ((FindingKind.OUTRANKED, 6), (FindingKind.STARVATION, 2)),
    "b": ((FindingKind.STARVATION, 2),),
    "c": ((FindingKind.OUTRANKED, 4), (FindingKind.INVERSION, 8)),
    "d": ((FindingKind.STARVATION, 2),),
    "e": ((FindingKind.STARVATION, 2),),
}


def found() -> PendingNow:
    """Six pods wait; of all but one, something was found."""
    pods = [holds("z", 8, on="g", namespace="rivals"), *(waits(name, 2) for name in "abcde")]
    now = world([node("g")], [*pods, waits("foreign", 2, namespace="rivals"), waits("quiet", 2)])
    findings = {f"uid-{name}": each for name, each in NAMED.items()}
    return now._replace(findings=findings | {"uid-foreign": NAMED["b"]})


def listed(viewer: Viewer = ALL) -> PendingDocument:
    return pending_list(found(), FIRST_POD, viewer)


def test_each_kind_is_summed_over_all_pages_and_names_the_oldest() -> None:
    sums = [(each.finding, each.pods, each.gpus, each.names) for each in listed().findings]

    assert sums == [
        ("inversion", 1, 2.0, ["ml/c"]),
        ("starvation", 5, 10.0, ["ml/a", "ml/b", "ml/d"]),
        ("outranked", 1, 2.0, ["ml/c"]),
    ]


def test_a_starved_pod_is_not_also_outranked_and_each_pod_has_its_own() -> None:
    [first] = listed().pods

    assert (first.pod, first.findings) == ("a", {"starvation": 2})


def test_the_text_has_a_line_for_each_kind() -> None:
    text = "\n".join(pending_lines(listed(), subject="", width=200))

    assert (
        "Inversion   1 pod has waited for 2 GPUs, up to 59 min, because pods that serve no users hold such GPUs" in text
    )
    assert "cannot be preempted for them: ml/a, ml/b, ml/d and 2 more\n" in text


def test_the_page_has_them_too_and_is_without_the_table_if_there_are_none() -> None:
    page = pending_page(listed(), FIRST_POD)
    empty = pending_page(pending_list(found()._replace(findings={}), FIRST_POD, ALL), FIRST_POD)

    assert "<td>pods of lower priority got such GPUs later, and cannot be preempted for them</td>" in page
    assert '<a href="/pending/why?namespace=ml&amp;pod=d">ml/d</a>' in page
    assert "Priority inversions" not in empty


def test_a_restricted_reader_learns_no_priority_and_no_pod_of_others() -> None:
    document = json.loads(msgspec.json.encode(listed(Viewer(frozenset({"ml"})))))

    assert [(each["finding"], each["pods"]) for each in document["findings"]] == [
        ("inversion", 1),
        ("starvation", 4),
        ("outranked", 1),
    ]
    assert {each["meaning"] for each in document["findings"]} == {
        "other pods hold such GPUs, although the waiting pods should come first"
    }
    assert "foreign" not in json.dumps(document)
