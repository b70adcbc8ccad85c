"""What the aggregator itself asks of its ledger: what is spent of budgets, and a period as it would be closed now."""

from msgspec import Struct


class BudgetsNow(Struct, frozen=True, kw_only=True, tag="budgets"):
    """Evaluates the budgets of a configuration with a price book, "" without one: paths of files."""

    configuration: str
    prices: str


class PeriodNow(Struct, frozen=True, kw_only=True, tag="period"):
    """Derives what would be stored if the period of this name were closed now."""

    name: str
    time_zone: str
