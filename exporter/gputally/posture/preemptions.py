"""Preemptions between PriorityClasses: those that values and policies permit, and those that a ledger has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from gputally.accounting.disruptions.preemptions import UNKNOWN
from gputally.accounting.terms.tier import NO_TIER, tier_of
from gputally.formatting.amounts import counted, listed
from gputally.ledger.records import PriorityClassRecord, Window
from gputally.model.kube.pods import NEVER, PREEMPTS
from gputally.model.rules import Rules
from gputally.model.units import to_datetime
from gputally.posture.classes import CatalogueClass, own_classes


class PreemptionHistory(Struct, frozen=True, kw_only=True):
    """What a ledger has of a window: preemptions by victim tier and preemptor tier, and versions of classes."""

    window: Window
    counts: Mapping[tuple[str, str], int]
    classes: Sequence[PriorityClassRecord]


class TierPair(Struct, frozen=True, kw_only=True):
    """How often pods of a tier preempted pods of another, and whether classes permit that; None if unknown."""

    preemptor: str
    victim: str
    observed: int
    permitted: bool | None

    @property
    def is_forbidden(self) -> bool:
        """Whether it was observed, although no class permits it."""
        return self.observed > 0 and self.permitted is False


class ObservedPreemptions(Struct, frozen=True, kw_only=True):
    """All pairs of tiers, the highest first, as preemptor and as victim; `sentences` are about forbidden ones."""

    start: datetime
    end: datetime
    tiers: tuple[str, ...]
    pairs: tuple[TierPair, ...]
    sentences: tuple[str, ...]


class _Rank(NamedTuple):
    """A class that pods of a tier have, or had in the window."""

    tier: str
    value: int
    policy: str

    def may_preempt(self, victim: "_Rank") -> bool:
        """Whether it is permitted, see `CatalogueClass.may_preempt`."""
        return self.policy == PREEMPTS and self.value > victim.value


def observed_preemptions(
    history: PreemptionHistory, classes: Iterable[CatalogueClass], rules: Rules
) -> ObservedPreemptions:
    """The matrix by tier: permitted is what a class of today, or of the window, permits.

    Pods keep the priority that they got at their creation, also when their class is gone.
    """
    ranks = frozenset(_ranks(history, classes, rules))
    tiers = _tiers(ranks, history.counts)
    pairs = tuple(_pair(preemptor, victim, ranks, history.counts) for preemptor in tiers for victim in tiers)
    pairs = tuple(each for each in pairs if each.victim != UNKNOWN)
    return ObservedPreemptions(
        start=to_datetime(history.window.start_us),
        end=to_datetime(history.window.end_us),
        tiers=tiers,
        pairs=pairs,
        sentences=tuple(_sentence(each) for each in pairs if each.is_forbidden),
    )


def _ranks(history: PreemptionHistory, classes: Iterable[CatalogueClass], rules: Rules) -> Iterator[_Rank]:
    """Present classes, those of the window, and pods without a class if there are some."""
    for each in classes:
        yield _Rank(each.tier, each.value, each.preemption_policy)
    for version in history.classes:
        yield _Rank(tier_of(version.name, version.value, rules), version.value, version.preemption_policy)
    without = tier_of("", 0, rules)
    if any(without in pair for pair in history.counts) or without != NO_TIER:
        yield _Rank(without, 0, PREEMPTS)


def _tiers(ranks: Iterable[_Rank], counts: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    """The tiers of classes by their highest value, then others that were observed."""
    highest: dict[str, int] = {}
    for rank in ranks:
        highest[rank.tier] = max(rank.value, highest.get(rank.tier, rank.value))
    others = {tier for pair in counts for tier in pair} - highest.keys()
    known = sorted(highest, key=lambda tier: (-highest[tier], tier))
    return (*known, *sorted(others - {UNKNOWN}), *(others & {UNKNOWN}))


def _pair(preemptor: str, victim: str, ranks: frozenset[_Rank], counts: Mapping[tuple[str, str], int]) -> TierPair:
    above = [each for each in ranks if each.tier == preemptor]
    below = [each for each in ranks if each.tier == victim]
    is_permitted = any(each.may_preempt(other) for each in above for other in below)
    return TierPair(
        preemptor=preemptor,
        victim=victim,
        observed=counts.get((victim, preemptor), 0),
        permitted=is_permitted if above and below else None,
    )


def _sentence(pair: TierPair) -> str:
    return (
        f"{pair.preemptor} preempted {pair.victim} {counted(pair.observed, 'time')}, which no class permits: look for "
        "another scheduler, and for priorities that were set without a class."
    )


class PermittedPreemptions(Struct, frozen=True, kw_only=True):
    """What pods of one class may preempt, and which may preempt them; system classes are left out.

    Without `policy_exists`, the API server refuses the class.
    """

    name: str
    may_preempt: tuple[str, ...]
    preempted_by: tuple[str, ...]
    sentence: str
    policy_exists: bool = True


def permitted_preemptions(classes: Sequence[CatalogueClass]) -> tuple[PermittedPreemptions, ...]:
    """A row for each class that is not the system's, in the order of the catalogue."""
    own = own_classes(classes)
    return tuple(_row(each, own) for each in own)


def preemptors_of(victim: CatalogueClass, classes: Sequence[CatalogueClass]) -> tuple[str, ...]:
    """The classes, without those of the system, whose pods may preempt those of `victim`."""
    return tuple(each.name for each in own_classes(classes) if each.may_preempt(victim))


def _row(found: CatalogueClass, own: Sequence[CatalogueClass]) -> PermittedPreemptions:
    victims = tuple(each.name for each in own if found.may_preempt(each))
    by = preemptors_of(found, own)
    sentence = f"{found.name} {_preempts(found, victims)}; {_may_preempt_it(by, others=len(own) - 1)}."
    return PermittedPreemptions(
        name=found.name, may_preempt=victims, preempted_by=by, sentence=sentence, policy_exists=found.policy_exists
    )


def _preempts(found: CatalogueClass, victims: Sequence[str]) -> str:
    if victims:
        return f"may preempt {listed(victims)}"
    if not found.policy_exists:
        return f"preempts nobody (the API server refuses preemptionPolicy {found.preemption_policy})"
    return f"preempts nobody (preemptionPolicy {NEVER})" if found.preemption_policy == NEVER else "preempts nobody"


def _may_preempt_it(by: Sequence[str], *, others: int) -> str:
    if not by:
        return "no class may preempt it"
    whom = "all other classes" if len(by) == others and others > 1 else listed(by)
    return f"{whom} may preempt it"
