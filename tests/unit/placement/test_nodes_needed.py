from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from gputally.placement.fit import copies, nodes_needed
from tests.unit.placement.cluster import amounts


def test_cpu_counts_as_gpus_do() -> None:
    offers = {amounts(gpu=8, cpu=96, pods=110): 4}

    assert nodes_needed(amounts(gpu=1, cpu=1), 8, offers) == 1
    assert nodes_needed(amounts(gpu=1, cpu=48), 8, offers) == 4
    assert nodes_needed(amounts(gpu=1, cpu=48), 9, offers) is None


@given(st.lists(st.integers(0, 8), min_size=1, max_size=5), st.integers(1, 4), st.integers(1, 12))
def test_no_smaller_set_of_nodes_holds_the_pods(sizes: list[int], gpus: int, count: int) -> None:
    needs, nodes = amounts(gpu=gpus), [amounts(gpu=size, pods=110) for size in sizes]
    offers = {offered: nodes.count(offered) for offered in nodes}
    rooms = [copies(needs, dict(offered)) for offered in nodes]
    chosen = (each for number in range(1, len(rooms) + 1) for each in combinations(rooms, number))
    enough = [len(each) for each in chosen if sum(each) >= count]

    assert nodes_needed(needs, count, offers) == min(enough, default=None)
