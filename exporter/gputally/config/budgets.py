"""The section `budgets`: what tenants or tiers may spend in each period."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Final

from gputally.accounting.terms.patterns import placeholders
from gputally.accounting.terms.tier import NO_TIER
from gputally.config.fields import Field, Section, value
from gputally.config.values import a_list_of, budget_size, member, text
from gputally.errors import Problem
from gputally.model.budgets import Budget
from gputally.model.periods import PeriodLength
from gputally.model.rules import TierRule
from gputally.process.clock import zone_named

MAX_BUDGETS: Final = 500
"""Each has up to nine series."""
_SIZES: Final = ("amount", "gpu_hours")
_PERIODS: Final = f"use {a_list_of(PeriodLength, 'or')}"
_FIELDS: Final = ("name", "tenant", "tier", "period", "time_zone", *_SIZES)


def budgets(field: Field) -> tuple[Budget, ...]:
    """The budgets in their order."""
    entries = [(entry, _budget(entry)) for entry in field.items()]
    if len(entries) > MAX_BUDGETS:
        field.refuse(f"has {len(entries)} budgets; use at most {MAX_BUDGETS}")
    sound = [(entry, found) for entry, found in entries if entry.sound]
    _check_names(sound)
    return tuple(found for _, found in sound)


def check_budget_tiers(field: Field, found: Iterable[Budget], rules: Sequence[TierRule]) -> None:
    """Record a problem for each budget of tiers that no rule gives, where no rule derives tiers from other names."""
    if any(placeholders(rule.tier) for rule in rules):
        return
    defined = tuple(dict.fromkeys((*(rule.tier for rule in rules), NO_TIER)))
    for entry, budget in zip(field.items(), found, strict=False):
        if not any(fnmatchcase(tier, budget.tier) for tier in defined):
            known = a_list_of(map(repr, defined), "or")
            entry.section(*_FIELDS)["tier"].refuse(f"{budget.tier!r} matches no tier of the tier rules; use {known}")


def unpriced_budgets(found: Iterable[Budget], *, file: str) -> list[Problem]:
    """A problem of `file` for each amount, if there is no price book whose currency it has."""
    remedy = "needs a price book for its currency; set --prices.file, or use gpu_hours"
    amounts = (index for index, budget in enumerate(found) if budget.amount is not None)
    return [Problem(file, f"budgets[{index}].amount", remedy) for index in amounts]


def _budget(field: Field) -> Budget:
    section = field.section(*_FIELDS)
    tenant, tier = (section.read(name, value(text), "*") for name in ("tenant", "tier"))
    if field.sound and "tenant" not in section and "tier" not in section:
        field.refuse('names neither tenant nor tier; add one of them, such as `tenant: research`, or `tenant: "*"`')
    period = section.require("period", value(member(PeriodLength)), _PERIODS) or PeriodLength.MONTH
    amount, gpu_hours = (_size(section, name) for name in _SIZES)
    if field.sound and (amount is None) == (gpu_hours is None):
        number = "neither amount nor gpu_hours; add one of them"
        field.refuse(f"has {number if amount is None else 'both amount and gpu_hours; use two budgets'}")
    of = [each for name, each in (("tenant", tenant), ("tier", tier)) if name in section]
    return Budget(
        name=section.read("name", value(text), "/".join((*of, period))),
        tenant=tenant,
        tier=tier,
        period=period,
        time_zone=section.read("time_zone", value(_zone_name), "UTC"),
        amount=amount,
        gpu_hours=gpu_hours,
    )


def _size(section: Section, name: str) -> Decimal | None:
    return section.read(name, value(budget_size), None)


def _zone_name(name: str) -> str:
    zone_named(name)
    return name


def _check_names(found: Iterable[tuple[Field, Budget]]) -> None:
    """Report budgets with the name of an earlier one: their series would be the same."""
    first: dict[str, Field] = {}
    for entry, budget in found:
        other = first.setdefault(budget.name, entry)
        if other is not entry:
            entry.refuse(f"is named {budget.name!r}, as is {other.path}; give it another `name`")
