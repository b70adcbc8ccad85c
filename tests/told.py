"""What a random history consists of: what is told of a cluster, in whole seconds since midnight, and prices."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal

Json = Mapping[str, Any]
Dated = tuple[tuple[int, Fraction | None], ...]
MIDNIGHT = datetime.fromisoformat("2026-07-01T00:00:00+00:00")


@dataclass(frozen=True, kw_only=True)
class Told:
    """At `at` a watch told of an object; unless it is live, it may have happened at any time from `since` on."""

    kind: Literal["pod", "node", "job", "coscheduling", "volcano"]
    event: Literal["seen", "gone", "vanished"]
    manifest: Json
    at: int
    since: int


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Per GPU-hour, by GPU model, as (from, price or None) in the order of time; and the multipliers of tiers.

    Before those by model come those by key of a label that the node carries, the first of them in the order of keys.
    """

    models: Mapping[str, Dated]
    tiers: Mapping[str, Fraction]
    labels: Mapping[str, Dated] = field(default_factory=dict)

    def of(self, model: str, tier: str, second: int, *, labels: Collection[str] = ()) -> Fraction | None:
        """The price then; None before the first one, and while there is none."""
        by_label = (_at(self.labels[key], second) for key in sorted(self.labels.keys() & set(labels)))
        found = next((price for price in by_label if price is not None), _at(self.models.get(model, ()), second))
        return None if found is None else found * self.tiers.get(tier, Fraction(1))

    def followed_by(self, later: "Prices", second: int) -> "Prices":
        """These up to `second`, `later` ones from there on; the multipliers are the same."""
        models = _followed(self.models, later.models, second)
        return Prices(models=models, tiers=self.tiers, labels=_followed(self.labels, later.labels, second))


def _followed(each: Mapping[str, Dated], later: Mapping[str, Dated], second: int) -> dict[str, Dated]:
    return {
        key: (
            *(dated for dated in each.get(key, ()) if dated[0] < second),
            (second, _at(later.get(key, ()), second)),
            *(dated for dated in later.get(key, ()) if dated[0] > second),
        )
        for key in {*each, *later}
    }


def _at(dated: Dated, second: int) -> Fraction | None:
    past = [price for since, price in dated if since <= second]
    return past[-1] if past else None


def seconds(text: str) -> int:
    """Since midnight."""
    return int((datetime.fromisoformat(text) - MIDNIGHT).total_seconds())
