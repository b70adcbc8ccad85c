"""Owner walks in any order: every pod's job is what a naive walk of the whole truth says, and nothing else is kept."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.terms.job import OwnerWalks
from gputally.model.kube.meta import Owner, OwnerReference
from gputally.model.observation import OwnerResolved
from gputally.model.pod_record import PodRecord

NAMESPACES = ("honest", "hostile")
MOST_STEPS = 10
"""Stated in docs/permissions.md."""

references = st.builds(
    lambda kind, name, uid: OwnerReference(api_version=kind[0], kind=kind[1], name=name, uid=uid, controller=True),
    st.sampled_from([("batch/v1", "Job"), ("batch.volcano.sh/v1alpha1", "Job"), ("x/v1", "Worker"), ("x/v1", "Set")]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["u", "v", "w"]),
)
owners = st.builds(Owner, st.sampled_from(NAMESPACES), references)
parents = st.dictionaries(owners, references, max_size=36)
"""What controls each owner, in circles too; an owner that is not in it has no controller."""
pods = st.lists(st.tuples(st.sampled_from(NAMESPACES), references | st.none()), max_size=12)


def job_by(parents: dict[Owner, OwnerReference], pod: PodRecord) -> tuple[str, str]:
    """The naive walk: up as long as there is something new, but ten steps at most."""
    if pod.owner is None:
        return "Pod", pod.name
    passed = [Owner(pod.namespace, pod.owner)]
    while len(passed) < MOST_STEPS and passed[-1].reference.api_version != "batch/v1" and passed[-1] in parents:
        above = Owner(pod.namespace, parents[passed[-1]])
        if above in passed:
            break
        passed.append(above)
    return passed[-1].reference.kind, passed[-1].reference.name


@given(parents=parents, pods=pods, order=st.randoms(use_true_random=False), gone=st.sets(st.integers(0, 11)))
def test_every_job_is_that_of_a_naive_walk_and_nothing_is_wanted_in_the_end(
    parents: dict[Owner, OwnerReference],
    pods: list[tuple[str, OwnerReference | None]],
    order: Random,
    gone: set[int],
) -> None:
    walks = OwnerWalks()
    records = {
        str(number): PodRecord(
            uid=str(number), namespace=namespace, name=f"pod-{number}", units=(), created_us=0, owner=owner
        )
        for number, (namespace, owner) in enumerate(pods)
    }
    asked: list[Owner] = []
    for record in records.values():
        walks.job(record)
    for number in gone & set(range(len(pods))):
        walks.leave(str(number))
        del records[str(number)]

    while walks.wanted:
        fresh = walks.drain()
        asked += fresh
        owner = order.choice(sorted(walks.wanted, key=repr))
        parent = parents.get(owner)
        for uid in walks.learn(OwnerResolved(owner=owner, parent=parent, at_us=0)):
            walks.job(records[uid])

    assert {uid: walks.job(record) for uid, record in records.items()} == {
        uid: (*job_by(parents, record), False) for uid, record in records.items()
    }
    assert len(asked) == len(set(asked)), "an owner was asked for twice"
    assert walks._waits == {}
    assert set(walks._known) <= set(asked)
