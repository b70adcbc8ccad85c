"""Accounting starts with a whole second, as API times have: nothing is missing of it."""

from gputally.accounting.changes import new_accounts
from gputally.accounting.fleet.fleet import Fleet
from gputally.model.kube.kinds import Kind
from gputally.model.observation import Upserted
from gputally.model.rules import Rules
from tests.core.manifests import NodeForm, as_node, us
from tests.fakes.stream import BOOK


def test_capacity_has_a_price_from_the_second_in_which_accounting_starts() -> None:
    fleet = Fleet(rules=Rules(), book=BOOK, saved=new_accounts(us(10.5)))

    fleet.apply(Upserted(kind=Kind.NODES, object=as_node(NodeForm()), at_us=us(10.6), since_us=us(10.6)))

    assert [at_us for _, at_us in fleet.drain().asset_prices] == [us(10)]
