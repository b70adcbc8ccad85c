"""Prices waits: what the same pod would cost on the nodes that it selects."""

from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from gputally.accounting.facts.gpu_model import UNKNOWN, required_labels
from gputally.accounting.nodes.facts import NO_POOL, asset_of
from gputally.accounting.prices.book import PriceBook
from gputally.accounting.prices.pricing import Pricing
from gputally.model.needs import TOO_MANY, Needs
from gputally.model.pod_record import PodRecord
from gputally.model.price import Asset, PriceRange, range_of
from gputally.model.rules import Rules
from gputally.placement.candidates import assets_for
from gputally.placement.needs import impersonal
from gputally.placement.room import Room

_Assets = frozenset[Asset]
MOST_NODE_CHECKS: Final = 10_000
"""Nodes, or groups of them, that are looked at between two calls of `renew`: anyone may create pods that all differ."""
_MOST_RANGES: Final = 4096


class _Lookup(NamedTuple):
    """What the nodes are that a pod selects, None if it selects none that exists, as of this state of the nodes."""

    places: int
    assets: _Assets | None


class CandidateNodePrices:
    """The prices of a GPU-hour for waiting pods, on the nodes of `room`.

    Where a pod selects nodes that exist, their prices count, of those that are large enough. Where it selects none that
    exists, such as of a pool that has scaled to zero, a node with the labels that it selects counts, but only by rules
    that name such a label: the default price is that of nodes, and says nothing about what is not known.

    What is not found out yet is None, never no price: whoever asks keeps the prices that it has, asks again, and
    charges for the time before it, too. Verdicts look at nodes as well, but take nothing from what is left for prices.
    """

    def __init__(self, room: Room, rules: Rules, pricing: Pricing) -> None:
        self.room = room
        self._rules = rules
        self._pricing = pricing
        self._named_only = pricing.book.without_default() if pricing.book else None
        self._found: WeakKeyDictionary[Needs, _Lookup] = WeakKeyDictionary()
        self._ranges: dict[tuple[bool, _Assets, str], PriceRange] = {}
        self._known: tuple[object, ...] = ()
        self._changes = 0
        self._node_checks = 0

    def renew(self) -> int:
        """Allow further looks at nodes; returns another number whenever the prices of many waits may have changed."""
        self._node_checks = 0
        known = len(self._pricing.changes), frozenset(+self.room.assets)
        if known != self._known:
            self._known = known
            self._changes += 1
            self._ranges.clear()
        return self._changes

    @property
    def can_check_nodes(self) -> bool:
        """Whether everything that is asked for now is found out."""
        return not self.room.lacks_nodes and self._node_checks < MOST_NODE_CHECKS

    def of(self, needs: Needs | None, tier: str, *, is_urgent: bool = False) -> PriceRange | None:
        """The prices of the pods with these needs, of that tier; without needs, or with some left out, none.

        None if they are not found out yet, as too many different pods wait for their turn, or nodes are missing. Prices
        that nobody can ask for later are urgent: they wait for no turn.
        """
        if self._pricing.book is None or self._named_only is None or needs is None or TOO_MANY in needs.unmodelled:
            return PriceRange()
        if (found := self._lookup(impersonal(needs), is_urgent=is_urgent)) is None:
            return None
        if found.assets is not None:
            return self._range(self._pricing.book, found.assets, tier)
        asset = self._selected(needs)
        return self._range(self._named_only, frozenset({asset}), tier) if asset else PriceRange()

    def on_node(self, record: PodRecord) -> PriceRange:
        """The price of a bound pod on its node, which nobody saw waiting."""
        terms, book = record.terms[-1], self._pricing.book
        price = book.price_of(terms.asset, tier=terms.tier, at_us=self._pricing.now_us) if book else None
        return PriceRange(price)

    def _lookup(self, needs: Needs, *, is_urgent: bool) -> _Lookup | None:
        if self.room.lacks_nodes:
            return None
        known = self._found.get(needs)
        if known and known.places == self.room.places:
            return known
        if not (is_urgent or self.can_check_nodes):
            return None
        before = self.room.answers.looked_at
        found = self._found[needs] = _Lookup(self.room.places, assets_for(needs, self.room))
        self._node_checks += self.room.answers.looked_at - before
        return found

    def _range(self, book: PriceBook, assets: _Assets, tier: str) -> PriceRange:
        key = book is self._named_only, assets, tier
        if (known := self._ranges.get(key)) is None:
            if len(self._ranges) >= _MOST_RANGES:
                self._ranges.clear()
            prices = (book.price_of(each, tier=tier, at_us=self._pricing.now_us) for each in assets)
            known = self._ranges[key] = range_of(each for each in prices if each)
        return known

    def _selected(self, needs: Needs) -> Asset | None:
        """A node with no other labels than those that the pod selects; None if prices depend on none of them."""
        selected = required_labels(needs.node_terms or ()) | dict(needs.node_selector)
        asset = asset_of(selected, self._rules, self._pricing.label_keys)
        model = "" if asset.gpu_model == UNKNOWN else asset.gpu_model
        pool = "" if asset.pool == NO_POOL else asset.pool
        asset = replace(asset, gpu_model=model, pool=pool)
        return None if asset == Asset(purchase=asset.purchase) else asset
