"""A budget that allows some disruptions is violated by all further ones, however its status lags behind."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.policy.disruption_budgets import DisruptionBudgets
from gputally.model.disruptions import Cause, Disrupted
from gputally.model.units import US_PER_SECOND
from tests.core.manifests import us
from tests.core.policies import budget
from tests.property.examples import examples

_MS = 1_000


class Group(NamedTuple):
    """Victims that are preempted at once, `after_ms` the group before; the status shows them `lag_ms` later."""

    after_ms: int
    victims: int
    lag_ms: int


GROUPS = st.lists(st.builds(Group, st.integers(100, 4_000), st.integers(1, 4), st.integers(10, 90)), max_size=8)


@examples(300)
@given(GROUPS, st.integers(0, 6))
def test_all_victims_beyond_what_a_budget_allows_violate_it_and_no_others(groups: list[Group], allowed: int) -> None:
    budgets = DisruptionBudgets(lambda: us(100))
    budgets.seen(budget(allowed), at_us=us(1))
    budgets.listed(["uid-guard"], at_us=us(1))
    time_us, victims, violated = us(10), 0, 0
    for group in groups:
        time_us += group.after_ms * _MS
        decided = Disrupted(Cause.PREEMPTION, time_us - time_us % US_PER_SECOND)
        for number in range(group.victims):
            at_us = time_us + number * _MS  # the watch of pods reports one after the other
            violated += budgets.violated("ml", ["uid-guard"], decided, at_us=at_us) is True
        victims += group.victims
        budgets.seen(budget(max(0, allowed - victims)), at_us=time_us + group.lag_ms * _MS)

    assert violated == max(0, victims - allowed)
