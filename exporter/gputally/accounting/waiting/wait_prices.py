"""The prices of waits: what the same pod would cost on the nodes that it selects."""

from collections.abc import Mapping
from typing import Final
from weakref import WeakKeyDictionary

from msgspec.structs import replace

from gputally.accounting.nodes.gpu_model import UNKNOWN
from gputally.accounting.nodes.node_facts import NO_POOL, asset_of
from gputally.accounting.prices.price_book import PriceBook
from gputally.accounting.prices.pricing import Pricing
from gputally.model.placement.needs import Needs
from gputally.model.pod import PodRecord
from gputally.model.price import Asset, PriceRange, range_of
from gputally.model.rules import Rules
from gputally.placement.candidates import assets_for
from gputally.placement.objects.same_needs import impersonal
from gputally.placement.room import Room

_Assets = frozenset[Asset]
_MOST_LOOKS: Final = 10_000
"""Nodes, or groups of them, that are looked at between two calls of `renew`: anyone may create pods that all differ."""
_MOST_RANGES: Final = 4096


class WaitPrices:
    """The prices of a GPU-hour for waiting pods, on the nodes of `room`.

    Where a pod selects nodes that exist, their prices count, of those that are large enough. Where it selects none that
    exists, such as of a pool that has scaled to zero, a node with the labels that it selects counts, but only by rules
    that name such a label: the default price is that of nodes, and says nothing about what is not known.
    """

    def __init__(self, room: Room, rules: Rules, pricing: Pricing) -> None:
        self.room = room
        self._rules = rules
        self._pricing = pricing
        self._named_only = pricing.book.without_default() if pricing.book else None
        self._assets: WeakKeyDictionary[Needs, tuple[int, _Assets | None]] = WeakKeyDictionary()
        """With the state of the nodes for which it holds."""
        self._ranges: dict[tuple[bool, _Assets, str], PriceRange] = {}
        self._known: tuple[object, ...] = ()
        self._changes = 0
        self._end = 0

    def renew(self) -> int:
        """Allow further looks at nodes; returns another number whenever the prices of many waits may have changed."""
        self._end = self.room.answers.looked_at + _MOST_LOOKS
        known = len(self._pricing.changes), frozenset(+self.room.assets)
        if known != self._known:
            self._known = known
            self._changes += 1
            self._ranges.clear()
        return self._changes

    def of(self, needs: Needs | None, tier: str) -> PriceRange:
        """The prices of the pods with these needs, of that tier; without needs, nothing is known."""
        if self._pricing.book is None or self._named_only is None or needs is None:
            return PriceRange()
        found = self._assets_for(impersonal(needs))
        if found is not None:
            return self._range(self._pricing.book, found, tier)
        asset = self._selected(needs)
        return self._range(self._named_only, frozenset({asset}), tier) if asset else PriceRange()

    def on_node(self, record: PodRecord) -> PriceRange:
        """The price of a bound pod on its node, which nobody saw waiting."""
        terms, book = record.terms[-1], self._pricing.book
        price = book.price_of(terms.asset, tier=terms.tier, at_us=self._pricing.now_us) if book else None
        return PriceRange(price)

    def _assets_for(self, needs: Needs) -> _Assets | None:
        """As last found out; too many different pods wait for their turn without a price."""
        known = self._assets.get(needs)
        if known and known[0] == self.room.places:
            return known[1]
        if self.room.answers.looked_at >= self._end:
            return known[1] if known else frozenset()
        found = assets_for(needs, self.room)
        self._assets[needs] = self.room.places, found
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
        asset = asset_of(selected_labels(needs), self._rules, self._pricing.label_keys)
        model = "" if asset.gpu_model == UNKNOWN else asset.gpu_model
        pool = "" if asset.pool == NO_POOL else asset.pool
        asset = replace(asset, gpu_model=model, pool=pool)
        return None if asset == Asset(purchase=asset.purchase) else asset


def selected_labels(needs: Needs) -> Mapping[str, str]:
    """The labels that every node has on which the pod may run; alternatives limit none."""
    found = {}
    if needs.node_terms and len(needs.node_terms) == 1:
        for each in needs.node_terms[0].match_expressions or ():
            if each.operator == "In" and each.values and len(each.values) == 1:
                found[each.key] = each.values[0]
    return found | dict(needs.node_selector)
