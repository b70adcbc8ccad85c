from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from unittest.mock import patch

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from gputally.accounting.facts import lifetime
from gputally.accounting.fleet.snapshot import publish
from gputally.accounting.nodes import capacity_account
from gputally.accounting.totals.total import Total
from gputally.model.allocation import Segment
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import OwnerReference
from gputally.model.kube.pods import Pod
from gputally.model.observation import Bookmark, Deleted, OwnerResolved, RelistFinished, RelistStarted, Upserted
from gputally.model.pod_record import PodRecord
from gputally.model.rules import Rules, TenantRule, TenantSource
from gputally.model.units import COST_UNIT, US_PER_SECOND
from tests.core.manifests import us
from tests.core.replay import Replay
from tests.property.examples import examples
from tests.property.kinds import KINDS
from tests.property.knowledge import complete_moments, uid
from tests.property.node_lives import HORIZON, OPENED
from tests.property.price_lists import book_of, price_lists
from tests.property.strategies import Cluster, clusters
from tests.told import Prices, Told
from tests.truth import Truth, account

RULES = Rules(
    tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"), TenantRule(source=TenantSource.NAMESPACE))
)
NO_PRICES = Prices(models={}, tiers={})
STEPS = ("", "", "", "scrape", "flush", "restart", "deceive", "owners")
PARENT = OwnerReference(kind="Set", name="s", uid="s", api_version="x/v1", controller=True)
EXAMPLES = examples(150)


def new_replay(prices: Prices) -> Replay:
    return Replay(rules=RULES, book=book_of(prices), opened=OPENED)


def tell(replay: Replay, told: Told, *, settle: bool = True) -> None:
    kind, type_ = KINDS[told.kind]
    if settle:
        come_along(replay, told)
    if told.event == "vanished":
        list_without(replay, kind, told)
    else:
        event = Deleted if told.event == "gone" else Upserted
        found = msgspec.convert(told.manifest, type_)
        observe = replay.apply if settle else replay.fleet.observe
        observe(event(kind=kind, object=found, at_us=us(told.at), since_us=us(told.since)))


def list_without(replay: Replay, kind: Kind, told: Told) -> None:
    """A listing of all that is known but what vanished.

    Others may have vanished by the same one, and are told of next: so it does not show that any was still there.
    """
    fleet = replay.fleet
    known = {Kind.PODS: fleet.pods.known, Kind.NODES: fleet.nodes.known, Kind.JOBS: fleet.jobs.known}[kind]()
    known = known | fleet.unaccounted.objects.keys() if kind is Kind.PODS else known
    replay.apply(RelistStarted(kind=kind, at_us=us(told.at)))
    fleet.coverage._listing[kind] = known - {told.manifest["metadata"]["uid"]}
    at_us, since_us = us(told.at), us(told.since)
    replay.apply(RelistFinished(kind=kind, version="9", at_us=at_us, since_us=since_us, as_of_us=since_us))


def come_along(replay: Replay, told: Told) -> None:
    """A live watch comes as far as what another tells at once, also where it tells nothing itself."""
    if told.at == told.since:
        come_to(replay, told.at)


def come_to(replay: Replay, at: int) -> None:
    """Nothing more is told of nodes up to then."""
    replay.apply(Bookmark(kind=Kind.NODES, version="9", at_us=us(at), since_us=us(at)))


def run(log: Iterable[Told], prices: Prices = NO_PRICES) -> Replay:
    replay = new_replay(prices)
    for told in log:
        tell(replay, told)
    come_to(replay, HORIZON)
    return replay


def truth_of(cluster: Cluster, prices: Prices) -> Truth:
    return account(cluster.log, opened=OPENED, until=HORIZON, prices=prices)


def seconds_of(replay: Replay, total: Total) -> dict[tuple[str, ...], Fraction]:
    return {labels: Fraction(value, US_PER_SECOND) for labels, value in replay.true(total, HORIZON).items()}


def assert_allocated(replay: Replay, truth: Truth) -> None:
    assert seconds_of(replay, Total.ALLOCATED) == dict(truth.allocated)


def assert_billed(replay: Replay, truth: Truth) -> None:
    assert_allocated(replay, truth)
    assert seconds_of(replay, Total.UNPRICED) == dict(truth.unpriced)
    cost = {labels[:4]: Fraction(v, COST_UNIT) for labels, v in replay.true(Total.COST, HORIZON).items()}
    assert cost == {labels: amount for labels, amount in truth.cost.items() if amount}


def assert_capacity(replay: Replay, truth: Truth) -> None:
    found = Counter[tuple[str, str]]()
    for (gpu_model, _, state), value in seconds_of(replay, Total.CAPACITY).items():
        found[gpu_model, state] += int(value)
    assert +found == +truth.capacity
    assert sum(seconds_of(replay, Total.PHYSICAL).values()) == truth.physical


def assert_laws(replay: Replay) -> None:
    """Allocated by tier is allocated by node and by the ledger; capacity and overcommitted are what was there."""
    snapshot = publish(replay.fleet, now_us=us(HORIZON), ledger={})
    assert snapshot.differences == {"allocated": 0, "capacity": 0}
    assert snapshot.cost_differences == {"capacity": 0}
    replay.flush()  # compares with the segments themselves


@given(clusters(), price_lists())
@EXAMPLES
def test_the_totals_equal_the_naive_reference(cluster: Cluster, prices: Prices) -> None:
    replay, truth = run(cluster.log, prices), truth_of(cluster, prices)

    assert_billed(replay, truth)
    assert_capacity(replay, truth)
    assert_laws(replay)


@given(clusters(outages=True), price_lists())
@EXAMPLES
def test_after_an_outage_the_totals_equal_the_reference_at_the_stated_bounds(cluster: Cluster, prices: Prices) -> None:
    replay, truth = run(cluster.log, prices), truth_of(cluster, prices)

    assert_billed(replay, truth)
    assert_capacity(replay, truth)
    assert_laws(replay)


@given(clusters(outages=True, prompt=True), price_lists(), st.data())
@EXAMPLES
def test_counters_never_fall_and_end_at_the_truth_over_scrapes_crashes_and_clock_steps(
    cluster: Cluster, prices: Prices, data: st.DataObject
) -> None:
    replay, i, kept, crashes = new_replay(prices), 0, 0, 3
    while i < len(cluster.log):
        tell(replay, cluster.log[i])
        i += 1
        step = data.draw(st.sampled_from(STEPS))
        if step == "scrape":
            replay.scrape(cluster.log[i - 1].at + data.draw(st.integers(-30, 5)))
        if step in ("scrape", "flush"):
            replay.flush()
            kept = i
        if step == "owners":
            look_up(replay, parent=data.draw(st.sampled_from([None, PARENT])))
        if step == "deceive" and crashes:
            deceive(replay, cluster.log[i - 1].at, by=data.draw(st.integers(11, 500)))
            i, kept, crashes = next_news(cluster.log, i), i, crashes - 1
        if step == "restart" and crashes:
            replay.restart()
            i, crashes = next_news(cluster.log, kept), crashes - 1  # what was not kept is told again
    come_to(replay, HORIZON)
    replay.scrape(HORIZON)
    replay.scrape(HORIZON)

    assert_billed(replay, truth_of(cluster, prices))
    assert_laws(replay)


def look_up(replay: Replay, *, parent: OwnerReference | None) -> None:
    """All owners that are wanted, each controlled by `parent`."""
    for owner in tuple(replay.fleet.pods.walks.wanted):
        replay.apply(OwnerResolved(owner=owner, parent=parent, at_us=replay.fleet.now_us))


def deceive(replay: Replay, at: int, *, by: int) -> None:
    """The server's time is held to be later than it is, until a new process knows better."""
    replay.scrape(at + by)
    replay.restart(at=at)
    replay.flush()


def next_news(log: tuple[Told, ...], i: int) -> int:
    """A watch that resumes does not tell its last news twice."""
    while 0 < i < len(log) and log[i] == log[i - 1]:
        i += 1
    return i


@given(clusters(relabels=False), price_lists(), price_lists(), st.data())
@EXAMPLES
def test_a_new_price_book_counts_from_its_load_on_and_changes_nothing_before(
    cluster: Cluster, prices: Prices, later: Prices, data: st.DataObject
) -> None:
    clean = complete_moments(cluster.log)
    assume(clean)
    i = data.draw(st.sampled_from(clean))
    replay = new_replay(prices)
    for told in cluster.log[:i]:
        tell(replay, told)
    replay.flush()
    loaded = cluster.log[i - 1].at
    replay.restart(book=book_of(later))
    for told in nodes_at(cluster.log[:i], loaded):  # it may look at labels that nobody kept
        tell(replay, told)
    for told in cluster.log[next_news(cluster.log, i) :]:
        tell(replay, told)
    come_to(replay, HORIZON)

    assert_billed(replay, truth_of(cluster, prices.followed_by(later, loaded)))
    assert_laws(replay)


def nodes_at(log: Iterable[Told], at: int) -> list[Told]:
    """A listing of the nodes that exist."""
    last = {uid(told): told for told in log if told.kind == "node"}
    return [replace(told, at=at, since=at) for told in last.values() if told.event == "seen"]


@given(clusters(outages=True, relabels=False), st.integers(1, 4), st.integers(1, 30 * US_PER_SECOND))
@EXAMPLES
def test_settling_old_capacity_keeps_the_partition_under_later_corrections(
    cluster: Cluster, window: int, settled_after_us: int
) -> None:
    with patch.multiple(capacity_account, _WINDOW=window, _FINALIZE_US=settled_after_us):
        replay = run(cluster.log)

    assert_allocated(replay, truth_of(cluster, NO_PRICES))
    assert_laws(replay)


@given(clusters(outages=True, relabels=False), price_lists(), st.data())
@EXAMPLES
def test_what_is_told_in_a_row_may_be_accounted_at_once(cluster: Cluster, prices: Prices, data: st.DataObject) -> None:
    each, rarely = new_replay(prices), new_replay(prices)
    for told in cluster.log:
        tell(each, told)
        tell(rarely, told, settle=data.draw(st.booleans()))
    for replay in (each, rarely):
        come_to(replay, HORIZON)

    assert segments_of(rarely) == segments_of(each)
    assert seconds_of(rarely, Total.CAPACITY) == seconds_of(each, Total.CAPACITY)
    assert_laws(rarely)


@given(clusters(), st.randoms(use_true_random=False))
@EXAMPLES
def test_the_forms_of_pods_in_any_order_and_number_give_the_same_segments(cluster: Cluster, random: Random) -> None:
    nodes = [t for t in cluster.log if t.kind == "node"]
    forms = [unlabelled(t) for t in cluster.log if t.kind == "pod" and t.event == "seen"]
    shuffled = random.sample(forms * 2, k=len(forms) * 2)

    assert segments_of(run([*nodes, *shuffled])) == segments_of(run([*nodes, *forms]))


def unlabelled(told: Told) -> Told:
    """Without its labels, which count from when they are seen."""
    meta = {**told.manifest["metadata"], "labels": {}}
    return replace(told, manifest={**told.manifest, "metadata": meta})


def segments_of(replay: Replay) -> dict[str, Sequence[Segment]]:
    return {uid: record.segments for uid, record in replay.fleet.pods.records.items()}


@given(clusters(), st.randoms(use_true_random=False))
@EXAMPLES
def test_what_is_known_of_a_life_does_not_depend_on_the_order_or_number_of_observations(
    cluster: Cluster, random: Random
) -> None:
    told = [t for t in cluster.log if t.kind == "pod" and uid(t) == "uid-p0"]
    shuffled = random.sample(told * 2, k=len(told) * 2)

    assert life_of(shuffled) == life_of(told)


def life_of(log: Iterable[Told]) -> PodRecord:
    record = PodRecord(uid="uid-p0", namespace="ml", name="p0", units=(), created_us=0)
    for told in log:
        observe = lifetime.gone if told.event == "gone" else lifetime.seen
        record = observe(record, msgspec.convert(told.manifest, Pod), at_us=us(told.at), since_us=us(told.at))
    return record
