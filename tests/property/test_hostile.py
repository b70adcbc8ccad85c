"""A hostile namespace changes nothing for others: the same history with and without it gives them the same bill."""

from collections.abc import Sequence
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.totals.series import Labels
from gputally.accounting.totals.total import Total
from gputally.errors import MalformedObject
from gputally.model.allocation import Segment
from gputally.model.rules import Limits, Rules, TenantRule, TenantSource
from tests.core.manifests import us
from tests.core.replay import Replay
from tests.property.examples import examples
from tests.property.hostile import NAMESPACE, TRUSTED, UNTRUSTED, beside, hostilities
from tests.property.node_lives import HORIZON, OPENED
from tests.property.price_lists import book_of, price_lists
from tests.property.strategies import Cluster, clusters
from tests.property.test_accounting import assert_laws, come_along, tell
from tests.told import Prices, Told

BY_NAMESPACE = Rules(tenants=(TenantRule(source=TenantSource.NAMESPACE),), limits=Limits(tenants=2))
BY_POD_LABEL = Rules(
    tenants=(TenantRule(source=TenantSource.POD_LABEL, key="team"), TenantRule(source=TenantSource.NAMESPACE)),
    limits=Limits(tenants=3),
)
HONEST = ("red", "blue", "ml")
WITH_TENANT = (Total.ALLOCATED, Total.COST, Total.UNPRICED, Total.UNOBSERVED)
"""Families whose second label is a tenant."""
MUCH_LATER = HORIZON + 200

Bill = dict[tuple[Total, Labels], int]


@given(clusters(outages=True), price_lists(), hostilities(UNTRUSTED), st.data())
@examples(100)
def test_whatever_a_namespace_does_leaves_the_bills_of_others_as_they_are(
    cluster: Cluster, prices: Prices, hostile: list[Told], data: st.DataObject
) -> None:
    assert_same_for_others(cluster, hostile, prices, BY_NAMESPACE, data)


@given(clusters(outages=True), price_lists(), hostilities(TRUSTED), st.data())
@examples(100)
def test_pods_that_wait_leave_the_bills_of_others_as_they_are_even_where_labels_name_tenants(
    cluster: Cluster, prices: Prices, hostile: list[Told], data: st.DataObject
) -> None:
    assert_same_for_others(cluster, hostile, prices, BY_POD_LABEL, data)


def assert_same_for_others(
    cluster: Cluster, hostile: list[Told], prices: Prices, rules: Rules, data: st.DataObject
) -> None:
    """Bills, ledger and what is published in the end."""
    scrapes = data.draw(st.sets(st.integers(OPENED, HORIZON), max_size=4))
    alone, attacked = (Replay(rules=rules, book=book_of(prices), opened=OPENED) for _ in range(2))

    both = beside(cluster, hostile)
    play(alone, both, scrapes, without=NAMESPACE)
    play(attacked, both, scrapes)

    assert bill_of_others(attacked) == bill_of_others(alone)
    assert segments_of_others(attacked) == segments_of_others(alone)
    assert published_of_others(attacked) == published_of_others(alone)
    assert_laws(attacked)


def play(replay: Replay, cluster: Cluster, scrapes: set[int], *, without: str = "") -> None:
    """Tell everything, and scrape at these times before anything of that second is told.

    `without` pods of that namespace, the watches come as far as with them.
    """
    pending = sorted(scrapes)
    for told in cluster.log:
        while pending and pending[0] <= told.at:
            replay.scrape(pending.pop(0))
        if without and told.manifest["metadata"].get("namespace") == without:
            come_along(replay, told)
            continue
        with suppress(MalformedObject):  # a quantity beyond all bounds, which is left out and counted
            tell(replay, told)
    replay.fleet.advance(us(HORIZON))


def bill_of_others(replay: Replay) -> Bill:
    """The truth of every counter that is an honest tenant's."""
    return {
        (total, labels): value
        for total in WITH_TENANT
        for labels, value in replay.true(total, HORIZON).items()
        if is_honest(labels)
    }


def published_of_others(replay: Replay) -> Bill:
    """What scrapes show of it, once every series has been there for a while."""
    replay.scrape(HORIZON)
    totals = replay.scrape(MUCH_LATER).totals
    points = ((total, point) for total in WITH_TENANT for point in totals[total] if is_honest(point.labels))
    return {(total, point.labels): point.value for total, point in points if point.value}


def is_honest(labels: Labels) -> bool:
    return labels[1] in HONEST


def segments_of_others(replay: Replay) -> dict[str, Sequence[Segment]]:
    records = replay.fleet.pods.records
    return {uid: record.segments for uid, record in records.items() if record.namespace != NAMESPACE}
