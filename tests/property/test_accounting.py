from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gputally.accounting.snapshot import publish
from gputally.accounting.totals import Total
from gputally.model.kube import Kind, Node, Pod
from gputally.model.observation import Gone, Listed, Listing, Seen
from gputally.model.rules import Rules, TenantRule, TenantSource
from gputally.model.units import COST_UNIT, US_PER_SECOND
from tests.core.manifests import us
from tests.core.replay import Replay
from tests.property.strategies import HORIZON, OPENED, Cluster, book_of, clusters, price_lists
from tests.truth import Prices, Told, Truth, account

RULES = Rules(tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"), TenantRule(source=TenantSource.NAMESPACE)))
KINDS = {"pod": (Kind.PODS, Pod), "node": (Kind.NODES, Node)}
FEW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def new_replay(prices: Prices) -> Replay:
    return Replay(rules=RULES, book=book_of(prices), opened=OPENED)


def tell(replay: Replay, told: Told) -> None:
    kind, type_ = KINDS[told.kind]
    found = msgspec.convert(told.manifest, type_)
    if told.event == "vanished":
        lacking(replay, kind, told)
    else:
        event = Gone if told.event == "gone" else Seen
        replay.apply(event(kind=kind, object=found, at_us=us(told.at), since_us=us(told.since)))


def lacking(replay: Replay, kind: Kind, told: Told) -> None:
    """A listing of all that is known but what vanished."""
    fleet = replay.fleet
    known = fleet.pods.known() if kind is Kind.PODS else fleet.nodes.known()
    replay.apply(Listing(kind=kind, at_us=us(told.at)))
    fleet._listing[kind] = known - {told.manifest["metadata"]["uid"]}
    replay.apply(Listed(kind=kind, version="9", at_us=us(told.at), since_us=us(told.since)))


def run(cluster: Cluster, prices: Prices) -> Replay:
    replay = new_replay(prices)
    for told in cluster.log:
        tell(replay, told)
    replay.fleet.advance(us(HORIZON))
    return replay


def truth_of(cluster: Cluster, prices: Prices) -> Truth:
    return account(cluster.log, opened=OPENED, until=HORIZON, prices=prices)


def seconds_of(replay: Replay, total: Total) -> dict[tuple[str, ...], Fraction]:
    return {k: Fraction(v, US_PER_SECOND) for k, v in replay.true(total, HORIZON).items()}


def assert_billed(replay: Replay, truth: Truth) -> None:
    assert seconds_of(replay, Total.ALLOCATED) == dict(truth.allocated)
    assert seconds_of(replay, Total.UNPRICED) == dict(truth.unpriced)
    cost = {labels[:4]: Fraction(v, COST_UNIT) for labels, v in replay.true(Total.COST, HORIZON).items()}
    assert cost == {labels: amount for labels, amount in truth.cost.items() if amount}


def capacity_of(replay: Replay) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for labels, value in replay.true(Total.CAPACITY, HORIZON).items():
        found[labels[0], labels[2]] += value // US_PER_SECOND
    return found


def assert_laws(replay: Replay) -> None:
    """The partition of allocated time, the conservation of capacity."""
    residuals = publish(replay.fleet, now_us=us(HORIZON), ledger=None).residuals
    assert residuals == {"allocated": 0, "capacity": 0}
    replay.flush()


@given(clusters(), price_lists())
@FEW
def test_the_totals_equal_the_naive_reference(cluster: Cluster, prices: Prices) -> None:
    replay, truth = run(cluster, prices), truth_of(cluster, prices)

    assert_billed(replay, truth)
    assert +capacity_of(replay) == +truth.capacity
    assert sum(seconds_of(replay, Total.PHYSICAL).values()) == truth.physical
    assert_laws(replay)


@given(clusters(outages=True), price_lists())
@FEW
def test_after_an_outage_the_totals_equal_the_naive_reference_at_the_stated_bounds(
    cluster: Cluster, prices: Prices
) -> None:
    replay, truth = run(cluster, prices), truth_of(cluster, prices)

    assert_billed(replay, truth)
    assert +capacity_of(replay) == +truth.capacity
    assert sum(seconds_of(replay, Total.PHYSICAL).values()) == truth.physical
    assert_laws(replay)


@given(clusters(outages=True), price_lists(), st.data())
@FEW
def test_counters_never_fall_and_end_at_the_truth_over_scrapes_and_restarts(
    cluster: Cluster, prices: Prices, data: st.DataObject
) -> None:
    replay, i, kept = new_replay(prices), 0, 0
    crashes = data.draw(st.integers(0, 3))
    while i < len(cluster.log):
        tell(replay, cluster.log[i])
        i += 1
        step = data.draw(st.sampled_from(["", "", "", "scrape", "flush", "restart"]))
        if step == "scrape":
            replay.scrape(cluster.log[i - 1].at + data.draw(st.integers(-30, 5)))
        if step in ("scrape", "flush"):
            replay.flush()
            kept = i
        if step == "restart" and crashes:
            replay.restart()
            i, crashes = kept, crashes - 1  # what was not kept is told again
    replay.scrape(HORIZON)
    replay.scrape(HORIZON)

    assert_billed(replay, truth_of(cluster, prices))
    assert_laws(replay)


@given(clusters(), st.randoms(use_true_random=False))
@FEW
def test_forms_of_a_pod_in_any_order_and_number_end_in_the_same_segments(cluster: Cluster, random: object) -> None:
    ...
