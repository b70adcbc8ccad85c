import pytest

from gputally_sim.api.refusals import StatusError
from gputally_sim.api.selectors import field_predicate, label_predicate

POD = {
    "metadata": {"name": "a", "namespace": "team", "labels": {"app": "x", "stage": "prod"}},
    "spec": {"nodeName": "n0"},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==b", False),
        ("metadata.namespace=team,spec.nodeName=n0", True),
        ("spec.nodeName!=n0", False),
        ("spec.nodeName=", False),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.phase=Running,metadata.name=b", False),
    ],
)
def test_fields_select_by_equality(selector: str, selected: bool) -> None:  # noqa: FBT001 - a table of expectations
    assert field_predicate("pods", selector)(POD) is selected


def test_an_event_is_selected_by_its_reason_and_by_what_it_is_about() -> None:
    event = {"metadata": {"name": "e"}, "reason": "Preempted", "involvedObject": {"kind": "Pod", "uid": "u"}}

    assert field_predicate("events", "reason=Preempted,involvedObject.uid=u")(event)
    assert not field_predicate("events", "involvedObject.kind=Node")(event)


@pytest.mark.parametrize("selector", ["spec.containers=x", "reason=Preempted", "metadata.uid=u"])
def test_a_field_pods_cannot_be_selected_by_is_refused(selector: str) -> None:
    with pytest.raises(StatusError, match="field label not supported"):
        field_predicate("pods", selector)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("app=x", True),
        ("app!=x", False),
        ("app in (x, y),stage notin (test)", True),
        ("app", True),
        ("!app", False),
        ("missing", False),
        ("missing!=x", True),
    ],
)
def test_labels_select_by_equality_set_and_existence(selector: str, selected: bool) -> None:  # noqa: FBT001 - see above
    assert label_predicate(selector)(POD) is selected
