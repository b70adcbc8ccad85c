"""Pods bound in the second in which their node joined, or later, are on it, however late or early both are observed."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.totals.total import Total
from tests.core.manifests import NodeForm, PodForm
from tests.core.replay import Form, Replay
from tests.unit.accounting.test_fleet import book

JOINED, END = 100, 200
TENTHS = 10


def observed(second: int, *, late: int) -> st.SearchStrategy[float]:
    """When something of that second is observed: up to 0.9 s early by a slow clock, or up to `late` seconds later."""
    return st.integers(second * TENTHS - 9, (second + late) * TENTHS).map(lambda tenths: tenths / TENTHS)


@st.composite
def pods(draw: st.DrawFn, name: str) -> tuple[float, PodForm]:
    """A pod with one GPU, bound soon after the node joined, and when that is observed."""
    bound = draw(st.integers(JOINED, JOINED + 3))
    form = PodForm(name=name, created=draw(st.integers(0, bound)), node="n1", scheduled=bound, accepted=bound)
    return draw(observed(bound, late=20)), form


@given(node_at=observed(JOINED, late=60), told=st.tuples(pods("a"), pods("b")), restarts=st.sets(st.integers(0, 2)))
def test_all_their_time_is_on_the_node_and_priced(
    node_at: float, told: tuple[tuple[float, PodForm], ...], restarts: set[int]
) -> None:
    node = NodeForm(created=JOINED, labels={"nvidia.com/gpu.product": "A100"})
    replay = Replay(book=book((0, "2")))
    seen: list[tuple[float, Form]] = [(node_at, node), *told]
    for number, (at, form) in enumerate(sorted(seen, key=lambda each: each[0])):
        replay.see(form, at=at)
        replay.scrape(at)
        if number in restarts:
            replay.restart()
    replay.scrape(END)

    time = replay.gpu_seconds(END)
    assert {labels[2] for labels in time} == {"A100"}
    assert replay.gpu_seconds(END, Total.UNPRICED) == {}
    bound = [form.scheduled or 0 for _, form in told]
    exact = sum(END - second for second in bound)
    assert exact <= sum(time.values()) <= exact + Fraction(9, TENTHS) * len(bound)
    capacity = replay.capacity(END)
    assert (capacity["allocated"], capacity.get("overcommitted", 0)) == (sum(time.values()), 0)
