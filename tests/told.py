"""What a random history consists of: what is told of a cluster, in whole seconds since midnight, and prices."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal

Json = Mapping[str, Any]
MIDNIGHT = datetime.fromisoformat("2026-07-01T00:00:00+00:00")


@dataclass(frozen=True, kw_only=True)
class Told:
    """At `at` a watch told of an object; unless it is live, it may have happened at any time from `since` on."""

    kind: Literal["pod", "node"]
    event: Literal["seen", "gone", "vanished"]
    manifest: Json
    at: int
    since: int


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Per GPU-hour, by GPU model, as (from, price or None) in the order of time; and the multipliers of tiers."""

    models: Mapping[str, tuple[tuple[int, Fraction | None], ...]]
    tiers: Mapping[str, Fraction]

    def of(self, model: str, tier: str, second: int) -> Fraction | None:
        """The price then; None before the first one, and while there is none."""
        past = [price for since, price in self.models.get(model, ()) if since <= second]
        return past[-1] * self.tiers.get(tier, Fraction(1)) if past and past[-1] is not None else None

    def followed_by(self, later: "Prices", second: int) -> "Prices":
        """These up to `second`, `later` ones from there on; the multipliers are the same."""
        models = {
            model: (
                *(dated for dated in self.models.get(model, ()) if dated[0] < second),
                (second, later.of(model, "", second)),
                *(dated for dated in later.models.get(model, ()) if dated[0] > second),
            )
            for model in {*self.models, *later.models}
        }
        return Prices(models=models, tiers=self.tiers)


def seconds(text: str) -> int:
    """Since midnight."""
    return int((datetime.fromisoformat(text) - MIDNIGHT).total_seconds())
