"""Random small clusters with waiting pods."""

from hypothesis import strategies as st

from gputally.model.kube.pods import LabelRequirement, NodeSelectorTerm, Toleration
from gputally.model.needs import Amounts, GangState, Needs, Place, QuotaState, Situation, Taint, Taken
from gputally.placement.room import Room

GPU = "nvidia.com/gpu"
PRIORITIES = st.integers(0, 3)
TAINTS = st.builds(
    Taint,
    st.sampled_from(["gpu", "team", "node.kubernetes.io/unschedulable"]),
    st.sampled_from(["", "a", "b"]),
    st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
)
TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(["", "gpu", "team"]),
    operator=st.sampled_from(["", "Equal", "Exists"]),
    value=st.sampled_from(["", "a", "b"]),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
)
KEYS = st.sampled_from(["pool", "size", "kubernetes.io/hostname"])
VALUES = st.sampled_from(["1", "2", "x"])
REQUIREMENTS = st.builds(
    LabelRequirement,
    key=KEYS,
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.lists(VALUES, min_size=1, max_size=2).map(tuple),
) | st.builds(
    LabelRequirement, key=KEYS, operator=st.sampled_from(["Gt", "Lt"]), values=VALUES.map(lambda value: (value,))
)
FIELDS = st.builds(
    LabelRequirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(["In", "NotIn"]),
    values=st.sampled_from(["n0", "n1"]).map(lambda name: (name,)),
)
TERMS = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(REQUIREMENTS, max_size=2).map(tuple),
    match_fields=st.lists(FIELDS, max_size=1).map(tuple),
)


def amounts(*, gpus: st.SearchStrategy[int], cpu: st.SearchStrategy[int]) -> st.SearchStrategy[Amounts]:
    return st.builds(
        lambda gpu, cpus: tuple(sorted((k, v) for k, v in {GPU: gpu, "cpu": cpus, "pods": 1}.items() if v)),
        gpus,
        cpu.map(lambda n: n * 1000),
    )


NEEDS = st.builds(
    Needs,
    namespace=st.just("ml"),
    amounts=amounts(gpus=st.integers(1, 4), cpu=st.integers(0, 4)),
    gpus=st.just((GPU,)),
    priority=PRIORITIES,
    may_preempt=st.booleans(),
    node_selector=st.dictionaries(KEYS, VALUES, max_size=1).map(lambda found: tuple(sorted(found.items()))),
    node_terms=st.none() | st.lists(TERMS, min_size=1, max_size=2).map(tuple),
    tolerations=st.lists(TOLERATIONS, max_size=2).map(tuple),
    gates=st.sampled_from([(), (), (), ("example.com/wait",), ("a", "b")]),
)
TAKEN = st.builds(
    Taken,
    amounts(gpus=st.integers(0, 3), cpu=st.integers(0, 3)),
    PRIORITIES,
    st.booleans(),
    st.none() | st.integers(0, 9),
)
SITUATIONS = st.builds(
    Situation,
    has_scheduler=st.sampled_from([True, True, True, False]),
    quota=st.sampled_from([None, None, QuotaState(name="q", what=f"requests.{GPU}", hard=4, used=4, needed=1)]),
    open_claims=st.sampled_from([(), (), ("claim",)]),
    gang=st.sampled_from([None, None, GangState(name="g", least=1, members=0)]),
    is_serving=st.booleans(),
)


@st.composite
def places(draw: st.DrawFn, name: str) -> Place:
    offered = {GPU: draw(st.integers(0, 4)), "cpu": 1000 * draw(st.integers(1, 6)), "pods": draw(st.integers(1, 6))}
    return Place(
        uid=f"uid-{name}",
        name=name,
        labels=tuple(sorted(draw(st.dictionaries(KEYS, VALUES)).items())),
        taints=tuple(draw(st.lists(TAINTS, max_size=2))),
        offered=tuple(sorted(offered.items())),
        is_cordoned=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def rooms(draw: st.DrawFn) -> Room:
    room = Room()
    for number in range(draw(st.integers(0, 4))):
        name = f"n{number}"
        room.put_node(draw(places(name)))
        for index, taken in enumerate(draw(st.lists(TAKEN, max_size=4))):
            room.bind(name, f"{name}-{index}", taken)
            if draw(st.sampled_from([False, False, False, True])):
                room.stop(name, f"{name}-{index}")
        for taken in draw(st.lists(TAKEN, max_size=1)):
            room.nominate(name, f"{name}-nominated", taken)
    return room
