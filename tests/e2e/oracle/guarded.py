"""States in which PodDisruptionBudgets decide about the victims of a preemption."""

from random import Random

from tests.e2e.oracle.state import GUARD, VALUES, State, class_name, holder, plain_node, plain_pod


def guarded(chance: Random, name: str) -> State:
    """Budgets protect some of the pods that an important pod could preempt; all have different priorities."""
    nodes = [plain_node(f"{name}-n{index}", name, gpus=4) for index in range(chance.choice((1, 2, 3)))]
    values = iter(chance.sample(VALUES[:15], 4 * len(nodes)))
    holders = [
        holder(
            f"holder-{index}-{number}",
            each,
            gpus=chance.choice((1, 1, 2)),
            priority=next(values),
            labels=chance.choice(({}, {GUARD: "a"}, {GUARD: "a"}, {GUARD: "b"})),
        )
        for index, each in enumerate(nodes)
        for number in range(chance.choice((2, 3)))
    ]
    pod = plain_pod(chance, name, gpus=chance.choice((2, 3, 4)), priority=VALUES[-1])
    pod["spec"]["priorityClassName"] = class_name(VALUES[-1])
    budgets = tuple((value, chance.choice((0, 1, 2, 3, 9))) for value in "ab")
    return State(name=name, nodes=tuple(nodes), holders=tuple(holders), pod=pod, budgets=budgets)
