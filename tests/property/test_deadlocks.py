"""Whatever gangs one tenant creates, the deadlock of others is found."""

from dataclasses import replace
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.waiting.gang_deadlocks import MOST_OF_TENANT
from tests.core.manifests import PodForm
from tests.property.examples import examples
from tests.unit.accounting.test_partial_gangs import gang, replay_of, waits


class OldGang(NamedTuple):
    """A gang with one bound pod, since `at`; `asks` are the GPUs of each pod that waits."""

    at: int
    asks: tuple[int, ...]


OLD = st.builds(OldGang, st.integers(1, 25), st.lists(st.sampled_from([1, 2, 3, 5, 8, 64]), max_size=6).map(tuple))


@given(st.lists(OLD, max_size=2 * MOST_OF_TENANT))
@examples(60)
def test_the_gangs_of_one_tenant_hide_no_deadlock_of_others(old: list[OldGang]) -> None:
    hostile = [each for number, one in enumerate(old) for each in pods_of(number, one)]
    honest = [*gang("a", bound=4, pending=4, at=10), *gang("b", bound=4, pending=4, at=12)]
    replay = replay_of(*hostile, *honest, gpus=8 + len(old))
    for at in range(40, 80, 5):
        found = waits(replay, at)

    gangs = replay.fleet.waiting.situations.partial_gangs
    assert [each for each in gangs.found if {"TrainingJob/ml/a", "TrainingJob/ml/b"} <= {*each}]
    compared = sum(each.gangs for each in found.partial.sums.values()) - sum(found.partial.not_compared.values())
    assert compared <= 2 + MOST_OF_TENANT


def pods_of(number: int, old: OldGang) -> list[PodForm]:
    forms = gang(f"old-{number}", bound=1, pending=len(old.asks), at=old.at)
    sizes = (1, *old.asks)
    return [replace(each, namespace="hostile", gpus=gpus) for each, gpus in zip(forms, sizes, strict=True)]
