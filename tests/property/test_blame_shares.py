"""To no pod more waiting GPUs are charged than it holds, whoever waits, and what is left is charged to nobody."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.units import GPU, GPU_SECOND
from gputally.model.waits import NOBODY, Occupant, PendingHistory, PendingSegment
from tests.core.manifests import NodeForm, PodForm, us
from tests.core.replay import Replay
from tests.property.examples import LONG, examples

NODES: Final = ("n1", "n2")
GPUS: Final = 8
IMPOSSIBLE: Final = 10**9
TIERS: Final = {"gold": 20, "lead": 10, "iron": 0}
"""With their priorities."""
STEPS = st.one_of(
    st.tuples(st.just("wait"), st.integers(1, 9), st.sampled_from(sorted(TIERS))),
    st.tuples(st.just("wait"), st.sampled_from([1, 8, 9, IMPOSSIBLE]), st.sampled_from(sorted(TIERS))),
    st.tuples(st.just("many"), st.integers(1, 4), st.sampled_from(sorted(TIERS))),
    st.tuples(st.just("hold"), st.integers(1, 4), st.sampled_from(sorted(TIERS))),
    st.tuples(st.just("hold"), st.integers(1, 4), st.sampled_from(sorted(TIERS))),
    st.tuples(st.sampled_from(["end", "bind", "withdraw", "restart", "flush"]), st.integers(0, 30), st.none()),
)
HISTORIES = st.lists(st.tuples(st.sampled_from([1, 7, 20, 70]), STEPS), min_size=1, max_size=90 if LONG else 30)


class World:
    """Two nodes, pods of three tiers that hold GPUs, and pods that wait."""

    def __init__(self) -> None:
        self.replay = Replay(opened=0)
        self.now, self.count = 10, 0
        self.holders: dict[str, PodForm] = {}
        self.waiting: dict[str, PodForm] = {}
        for name in TIERS:
            self.replay.see_class({"metadata": {"name": name, "uid": f"uid-{name}"}, "value": 1}, at=0)
        self.replay.relist(Kind.NODES, *(NodeForm(name=name, gpus=GPUS) for name in NODES), at=1, since=None)
        self.replay.relist(Kind.PODS, at=2, since=None)

    def new(self, gpus: int, tier: str) -> PodForm:
        self.count += 1
        name = f"p{self.count}"
        namespace = ("ml", "vision")[self.count % 2]
        return PodForm(name=name, namespace=namespace, gpus=gpus, tier=tier, priority=TIERS[tier], created=self.now - 1)

    def step(self, after: int, what: str, number: int, tier: str | None) -> None:
        self.now += after
        match what:
            case "wait" | "many":
                for _ in range(1 if what == "wait" else 20):
                    self.see(self.new(number, str(tier)))
            case "hold":
                self.see(self.bound(self.new(number, str(tier)), NODES[self.count % 2]))
            case "bind" if self.waiting:
                self.see(self.bound(self.chosen(self.waiting, number), NODES[number % 2]))
            case "withdraw" if self.waiting:
                form = self.chosen(self.waiting, number)
                self.replay.lose(form, at=self.now)
                del self.waiting[form.name]
            case "flush":
                self.replay.flush()
            case "end" | "restart":
                (self.end if what == "end" else self.restart)(number)

    def end(self, number: int) -> None:
        if self.holders:
            form = self.chosen(self.holders, number)
            self.replay.see(_with(form, phase="Succeeded", finished=self.now), at=self.now)
            del self.holders[form.name]

    def restart(self, number: int) -> None:
        """A new process learns at once that pods have ended, and later what exists."""
        self.replay.flush()
        self.replay.restart()
        for _ in range(number % 4):
            self.now += 1
            self.end(number)
            self.check()
        self.replay.relist(Kind.NODES, *(NodeForm(name=name, gpus=GPUS) for name in NODES), at=self.now, since=None)
        self.replay.relist(Kind.PODS, *self.holders.values(), *self.waiting.values(), at=self.now, since=None)

    def bound(self, form: PodForm, node: str) -> PodForm:
        return _with(form, node=node, scheduled=self.now, started=self.now)

    def chosen(self, forms: Mapping[str, PodForm], number: int) -> PodForm:
        return list(forms.values())[number % len(forms)]

    def see(self, form: PodForm) -> None:
        self.replay.see(form, at=self.now)
        self.waiting.pop(form.name, None)
        (self.holders if form.node else self.waiting)[form.name] = form

    def check(self) -> None:
        self.replay.scrape(self.now)
        is_charged_within_bounds(self)
        older_pods_come_first(self)


def _with(form: PodForm, **fields: object) -> PodForm:
    return PodForm(**{**form.__dict__, "version": form.version + 1, **fields})


@given(HISTORIES)
@examples(200)
def test_no_pod_is_charged_for_more_waiting_gpus_than_it_holds(
    history: Sequence[tuple[int, tuple[str, int, str | None]]],
) -> None:
    world = World()
    for after, step in history:
        world.step(after, *step)
        world.check()
    waited_once(world)


def is_charged_within_bounds(world: World) -> None:
    held = {f"uid-{form.name}": form.gpus * GPU for form in world.holders.values()}
    payers = Counter[Occupant]()
    for form in world.holders.values():
        payers[Occupant(form.tier, form.namespace)] += form.gpus * GPU
    charged, demands = Counter[Occupant](), list[tuple[int, tuple[str, ...]]]()
    for pod, wait in lasting(world):
        assert sum(quantity for _, quantity in wait.charges) == wait.quantity
        assert (wait.occupant is None) == (not pod.holders) == (not wait.by_occupant)
        if wait.occupant:
            charged[wait.occupant] += wait.by_occupant
            demands.append((wait.by_occupant, pod.holders))
    assert charged <= payers, "more is charged to a tier and tenant than its pods hold"
    assert is_feasible(held, demands), "more is charged to some pods than they hold"


def is_feasible(held: Mapping[str, int], demands: Sequence[tuple[int, tuple[str, ...]]]) -> bool:
    """Hall's condition: what waits for no other pods than these takes no more than they hold."""
    for several in {frozenset(holders) for _, holders in demands} | {
        frozenset((*first, *second)) for _, first in demands for _, second in demands
    }:
        if sum(amount for amount, holders in demands if several.issuperset(holders)) > sum(
            held.get(uid, 0) for uid in several
        ):
            return False
    return True


def older_pods_come_first(world: World) -> None:
    """Of pods that wait for the same ones, a later one is charged only if the earlier ones are charged in full."""
    forms = {f"uid-{form.name}": form for form in world.waiting.values()}
    behind: dict[tuple[str, ...], list[tuple[int, str, bool]]] = {}
    for pod, wait in lasting(world):
        if pod.holders:
            is_full = wait.by_occupant == wait.quantity
            behind.setdefault(pod.holders, []).append((forms[pod.uid].created, pod.uid, is_full))
    for found in behind.values():
        assert all(is_full for *_, is_full in sorted(found)[:-1])


def lasting(world: World) -> list[tuple[PendingHistory, PendingSegment]]:
    known = world.replay.fleet.waiting.book.known.values()
    return [(pod, pod.waits[-1]) for pod in known if pod.waits and pod.waits[-1].to_us is None]


def waited_once(world: World) -> None:
    """All causes together are the pending time, and what nobody holds is charged to nobody."""
    found = world.replay.true(Total.PENDING, world.now)
    whole = sum(
        row.wait.quantity * ((us(world.now) if row.wait.to_us is None else row.wait.to_us) - row.wait.from_us)
        for row in world.replay.memory.waits.values()
    )
    assert sum(found.values()) == whole
    assert all(amount % (GPU_SECOND // 10**6) == 0 for amount in found.values())
    assert {by for _, by, _ in found} <= {*TIERS, NOBODY, "other"}
