"""What is spent of each budget, what is forecast, and when it is exhausted."""

from typing import Final

from monitoring.board import Row
from monitoring.panel import ORANGE, RED, Column, Look, Query, Steps, bars, table, timeseries
from monitoring.selector import Selectors
from monitoring.unit import GPU_HOURS, MOMENT, MONEY, RATIO

_select: Final = Selectors("cluster", "tenant")
_NONE: Final = "no budgets"
_KEYS: Final = {"budget": "Budget", "tenant": "Tenant", "tier": "Tier", "period": "Period"}
_ON: Final = "cluster, budget, tenant, tier, period"
_STEPS: Final[Steps] = {0.9: ORANGE, 1: RED}


def _now(name: str, bound: str = "") -> str:
    return _select.now(f"gputally_budget_{name}", *([f'bound="{bound}"'] if bound else []))


def _share(name: str, unit: str, bound: str = "") -> str:
    """Of the limit of each budget in this unit."""
    on = f"{_ON}, currency" if unit == "cost" else _ON
    return f"{_now(f'{name}_{unit}', bound)} / on ({on}) {_now(f'limit_{unit}')}"


def _columns(unit: str) -> tuple[Column, ...]:
    shown, of = (MONEY, "") if unit == "cost" else (GPU_HOURS, " / 3600")
    these = f" and on ({_ON}) {_now(f'limit_{unit}')}"
    return (
        Column(head="Limit", expression=f"{_now(f'limit_{unit}')}{of}", unit=shown),
        Column(head="Spent", expression=f"{_now(f'spent_{unit}')}{of}", unit=shown),
        Column(head="Spent share", expression=_share("spent", unit), unit=RATIO, steps=_STEPS),
        Column(head="Elapsed", expression=f"{_now('elapsed_ratio')}{these}", unit=RATIO),
        Column(head="Forecast", expression=f"{_now(f'forecast_{unit}', 'expected')}{of}", unit=shown),
        Column(head="Lower", expression=f"{_now(f'forecast_{unit}', 'lower')}{of}", unit=shown),
        Column(head="Upper", expression=f"{_now(f'forecast_{unit}', 'upper')}{of}", unit=shown),
        Column(
            head="Exhausted on",
            expression=f"1000 * ({_now('exhaustion_timestamp_seconds', 'expected')}{these})",
            unit=MOMENT,
        ),
    )


_READING: Final = (
    "In the current period of each budget, from the ledger. The forecast has a probability of 80 % to be between lower "
    "and upper; it needs three full days of data."
)

BUDGETS: Final = Row(
    "Budgets",
    (
        table(
            Look("Budgets in money", _READING, empty=_NONE, width=24, height=8),
            {**_KEYS, "currency": "Currency"},
            *_columns("cost"),
            order="Spent share",
        ),
        table(
            Look("Budgets in GPU-hours", _READING, empty=_NONE, width=24, height=8),
            _KEYS,
            *_columns("gpu_seconds"),
            order="Spent share",
        ),
        bars(
            Look(
                "Spent share of budgets",
                "What is spent of each budget in its current period.",
                unit=RATIO,
                empty=_NONE,
                steps=_STEPS,
            ),
            Query(_share("spent", "cost"), "{{budget}}"),
            Query(_share("spent", "gpu_seconds"), "{{budget}}"),
        ),
        timeseries(
            Look(
                "Forecast share of budgets",
                "The forecast for the end of the current period, as a share of the budget. Above 100 %, it will be "
                "exceeded.",
                unit=RATIO,
                empty="no budgets, or less than three full days of data",
                steps={1: RED},
            ),
            Query(_share("forecast", "cost", "expected"), "{{budget}}"),
            Query(_share("forecast", "gpu_seconds", "expected"), "{{budget}}"),
        ),
    ),
)
