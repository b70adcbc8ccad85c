"""Budgets that are spent or will be, and budgets whose values are out of date."""

from typing import Final

from monitoring.rule import Alert, Group

_LABELS: Final = "cluster, budget, tenant, tier, period"


def _share(name: str, matcher: str = "") -> str:
    """Of the limit of each budget, in money or in GPU-hours."""
    return (
        f"max by ({_LABELS}, currency) (gputally_budget_{name}_cost{matcher})"
        f" / max by ({_LABELS}, currency) (gputally_budget_limit_cost)\n"
        f"  or\n"
        f"  max by ({_LABELS}) (gputally_budget_{name}_gpu_seconds{matcher})"
        f" / max by ({_LABELS}) (gputally_budget_limit_gpu_seconds)"
    )


_OF: Final = "{{ $labels.budget }} (tenant {{ $labels.tenant }}, tier {{ $labels.tier }}) of this {{ $labels.period }}"
_WHEN: Final = (
    '{{ with printf "max(gputally_budget_exhaustion_timestamp_seconds{cluster=%q, budget=%q, bound=`$bound`})" '
    "$labels.cluster $labels.budget | query }} It will be exhausted at "
    "{{ . | first | value | humanizeTimestamp }}.{{ end }}"
)

GROUP = Group(
    name="budgets",
    alerts=(
        Alert(
            name="GputallyBudgetExceeded",
            expression=f"""\
(
  {_share("spent")}
) > $share
""",
            summary="A budget is spent.",
            description=(
                f"Of the budget {_OF}, {{{{ $value | humanizePercentage }}}} is spent. Find out by which jobs with "
                "`gputally report --by job`, and ask the tenant to wait, or raise the budget."
            ),
            dashboard="tenants",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyBudgetForecastExceeded",
            expression=f"""\
(
  {_share("forecast", '{bound="$bound"}')}
) > $share
unless on ({_LABELS})
(
  {_share("spent")}
) > $share
""",
            summary="A budget will be exceeded.",
            description=(
                f"The forecast for the budget {_OF} is {{{{ $value | humanizePercentage }}}} of it.{_WHEN} Find out "
                "what has grown with `gputally report --compare previous`, and agree with the tenant on what can wait."
            ),
            dashboard="tenants",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyBudgetsNotEvaluated",
            expression="time() - max by (cluster) (gputally_budgets_accounted_timestamp_seconds) > $seconds",
            summary="Budgets are not evaluated.",
            description=(
                "The budgets of cluster {{ $labels.cluster }} were not evaluated for {{ $value | humanizeDuration }}, "
                "so other alerts on budgets may be late. Read the warning in the aggregator's log."
            ),
            dashboard="tenants",
            variables=("cluster",),
        ),
    ),
)
