"""What a tenant waits for changes no wait of others, and no sum that others share becomes too large to read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gputally.accounting.totals.total import Total
from gputally.errors import MalformedObject
from gputally.model.kube.kinds import OPTIONAL_RESOURCES, Kind
from gputally.model.units import COST_UNIT, GPU, GPU_SECOND, US_PER_DAY
from gputally.model.waits import PendingSegment, UncreatedPodsSegment
from tests.core.manifests import us
from tests.core.refusals import parallel_job
from tests.core.replay import Replay
from tests.property.askings import Asking, askings
from tests.property.examples import examples
from tests.property.hostile import NAMESPACE, TRUSTED, beside, hostilities
from tests.property.node_lives import HORIZON, OPENED
from tests.property.price_lists import book_of, price_lists
from tests.property.strategies import Cluster, clusters
from tests.property.test_accounting import come_along, tell
from tests.property.test_hostile import BY_NAMESPACE, bill_of_others
from tests.told import Prices, Told

RULES: Final = replace(BY_NAMESPACE, watched=OPTIONAL_RESOURCES, known_tiers=("train",))
HONEST_AT: Final = (30, 60)
"""When an honest Job is suspended, and when it is admitted."""
LATER: Final = us(HORIZON) + 365 * US_PER_DAY
RESOLVES: Final = 2**46
"""So many GPU-seconds, or units of a currency, leave a float 7 bits for what is less than one."""
COSTS: Final = (Total.COST, Total.PENDING_COST, Total.UNCREATED_COST)
TIMES: Final = (
    Total.PENDING,
    Total.PENDING_UNPRICED,
    Total.UNCREATED,
    Total.UNCREATED_UNPRICED,
    Total.UNCREATED_AT_LEAST,
)


@given(clusters(), price_lists(), hostilities(TRUSTED), askings(), st.data())
@examples(100)
def test_whatever_a_tenant_waits_for_others_wait_as_without_it_and_every_shared_sum_can_be_read(
    cluster: Cluster, prices: Prices, hostile: list[Told], asked: list[Asking], data: st.DataObject
) -> None:
    scrapes = data.draw(st.sets(st.integers(OPENED, HORIZON), min_size=1, max_size=6))
    alone, attacked = (Replay(rules=RULES, book=book_of(prices), opened=OPENED) for _ in range(2))
    both = beside(cluster, hostile)
    play(alone, both, asked, scrapes, is_attacked=False)
    play(attacked, both, asked, scrapes, is_attacked=True)

    has_blame = not takes_blame(attacked)
    assert waits_of_others(attacked, has_blame=has_blame) == waits_of_others(alone, has_blame=has_blame)
    assert uncreated_of_others(attacked) == uncreated_of_others(alone)
    assert bill_of_others(attacked) == bill_of_others(alone)
    assert any(wait.name == "honest" for wait in uncreated_of_others(alone).values())
    assert not [*unreadable(attacked)]


def play(replay: Replay, cluster: Cluster, asked: Sequence[Asking], scrapes: set[int], *, is_attacked: bool) -> None:
    """Tell everything in order of time; without the hostile tenant, time passes all the same."""
    for kind in (Kind.NODES, Kind.PODS):
        replay.relist(kind, at=0, since=None)
    replay.relist_objects(Kind.JOBS, at=0)
    honest = parallel_job("honest", queue="q", suspend=True)
    own = [Asking(at, Kind.JOBS, honest, is_gone=at == HONEST_AT[1]) for at in HONEST_AT]
    told: list[Told | Asking] = [*cluster.log, *own, *asked]
    steps = [*((each.at, each) for each in told), *((at, None) for at in scrapes)]
    for at, step in sorted(steps, key=lambda each: each[0]):
        if step is None:
            replay.scrape(at)
        elif isinstance(step, Told):
            tell_of(replay, step, is_attacked=is_attacked)
        elif is_attacked or step in own:
            observe(replay, step)
        else:
            replay.fleet.advance(us(at))
    replay.scrape(HORIZON)


def tell_of(replay: Replay, told: Told, *, is_attacked: bool) -> None:
    if told.manifest["metadata"].get("namespace") == NAMESPACE and not is_attacked:
        replay.fleet.advance(us(told.at))
        come_along(replay, told)
        return
    with suppress(MalformedObject):  # a quantity beyond all bounds, which is left out and counted
        tell(replay, told)


def observe(replay: Replay, asking: Asking) -> None:
    change = replay.lose_object if asking.is_gone else replay.see_object
    with suppress(MalformedObject):
        change(asking.kind, asking.found, at=asking.at)


def takes_blame(replay: Replay) -> bool:
    """Whether the tenant waits for GPUs that others hold: whoever has waited for longer is charged to them first."""
    return any(row.wait.occupied for row in replay.memory.waits.values() if row.namespace == NAMESPACE)


def waits_of_others(replay: Replay, *, has_blame: bool) -> Mapping[str, Sequence[PendingSegment]]:
    """The waits of each pod, by time; without blame, for a reason as long as it lasts, whoever held the GPUs."""
    found: dict[str, list[PendingSegment]] = {}
    for (uid, _), row in sorted(replay.memory.waits.items(), key=lambda each: each[0]):
        if row.namespace == NAMESPACE:
            continue
        waits = found.setdefault(uid, [])
        wait = row.wait if has_blame else replace(row.wait, occupant=None, occupied=None, shown=row.wait.shown[:1])
        if not has_blame and waits and replace(waits[-1], from_us=wait.from_us, to_us=wait.to_us) == wait:
            wait = replace(waits.pop(), to_us=wait.to_us)
        waits.append(wait)
    return found


def uncreated_of_others(replay: Replay) -> Mapping[tuple[str, str, int], UncreatedPodsSegment]:
    return {key: wait for key, wait in replay.memory.uncreated_waits.items() if wait.namespace != NAMESPACE}


def unreadable(replay: Replay) -> Iterator[str]:
    """Sums that would be too large after a year of the same, and gauges that are."""
    for total, unit in (*((each, GPU_SECOND) for each in TIMES), *((each, COST_UNIT) for each in COSTS)):
        for labels, series in replay.fleet.totals.truth(total):
            if abs(series.at(LATER)) > RESOLVES * unit:
                yield f"{total} {labels}: {series.at(LATER) / unit}"
    snapshot = replay.scrape(HORIZON + 1)
    assert snapshot.waits
    assert snapshot.uncreated
    sums = [*snapshot.waits.reasons.values(), *snapshot.uncreated.reasons.values()]
    yield from (f"{pods} pods, {quantity} µGPU" for pods, quantity in sums if max(pods, quantity / GPU) > RESOLVES)
