"""A part that is skipped at a pod would have changed nothing, whatever the pod says."""

from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.fleet.readers import Readers
from tests.property.examples import examples
from tests.property.strategies import Cluster, clusters
from tests.property.test_accounting import NO_PRICES, new_replay, tell
from tests.told import Json, Told

ANNOTATIONS: tuple[Json, ...] = (
    *({}, {}, {}),
    {"gputally.io/progress": "3"},
    {"gputally.io/checkpoint-interval": "10m"},
    {"gputally.io/last-checkpoint": "2026-07-01T00:00:15Z"},
    {"example.com/other": "x"},
)
AGENT = {"app.kubernetes.io/name": "gputally", "app.kubernetes.io/component": "agent"}
META: tuple[Json, ...] = (*({},) * 9, {"labels": AGENT, "namespace": "gputally"})
SPEC: tuple[Json, ...] = (*({},) * 9, {"schedulingGroup": {"podGroupName": "gang"}})
STATUS: tuple[Json, ...] = (*({},) * 9, {"nominatedNodeName": "n1"})


@st.composite
def saying_more(draw: st.DrawFn, cluster: Cluster) -> list[Told]:
    """The cluster, whose pods have annotations, nominations and groups at times, or become agents."""
    found = []
    for told in cluster.log:
        if told.kind == "pod":
            meta = {**told.manifest["metadata"], "annotations": draw(st.sampled_from(ANNOTATIONS))}
            meta |= draw(st.sampled_from(META))
            spec = {**told.manifest["spec"], **draw(st.sampled_from(SPEC))}
            status = {**told.manifest["status"], "podIP": "10.0.0.1", **draw(st.sampled_from(STATUS))}
            more = {"metadata": meta, "spec": spec, "status": status}
            found.append(replace(told, manifest={**told.manifest, **more}))
        else:
            found.append(told)
    return found


def written(log: list[Told]) -> list[Json]:
    """What is stored after each step."""
    replay, found = new_replay(NO_PRICES), []
    for told in log:
        tell(replay, told)
        replay.flush()
        found.append({name: dict(each) for name, each in replay.memory.documents.items()})
    return [*found, {"history": replay.memory.history}]


@given(clusters().flatmap(saying_more))
@examples(50)
def test_a_part_that_is_skipped_would_have_changed_nothing(log: list[Told]) -> None:
    spared = written(log)
    with patch.object(Readers, "of", lambda self, kind, _: self.of_kind[kind]):
        asked = written(log)

    assert spared == asked
