"""How long the steps of preemptions take."""

from dashboards.rows.aggregator_pages import disrupted_pods
from monitoring.board import Row
from monitoring.panel import ORANGE, RED, Column, Look, Query, stat, table
from monitoring.selector import Selectors, grown_in_all
from monitoring.unit import COUNT, RATIO, SECONDS

select = Selectors("cluster", "tier", "tenant")

OVERRUN = select("gputally_grace_period_exceeded_total")
_STEPS = "gputally_preemption_step_seconds"
_OF_ALL = 'cluster=~"$cluster"'
_NONE = "no preemptions"
_ESTIMATED = "Of all tenants, estimated from histogram buckets; max is the bound of the slowest one's bucket."


def _quantile(share: float, step: str) -> str:
    buckets = f'{_STEPS}_bucket{{{_OF_ALL}, step="{step}"}}'
    return f"histogram_quantile({share:g}, {grown_in_all(buckets, 'le')})"


def _quantiles(step: str) -> tuple[Query, Query, Query]:
    typical, slow, slowest = (_quantile(share, step) for share in (0.5, 0.9, 1))
    return Query(typical, "p50"), Query(slow, "p90"), Query(slowest, "max")


def _by_step(share: float) -> str:
    return f"histogram_quantile({share:g}, {grown_in_all(f'{_STEPS}_bucket{{{_OF_ALL}}}', 'step', 'le')})"


def _sum() -> str:
    return f"{_STEPS}_sum{{{_OF_ALL}}}"


def _count(*more: str) -> str:
    return f"{_STEPS}_count{{{', '.join((_OF_ALL, *more))}}}"


STEPS = Row(
    "How long a preemption takes",
    (
        stat(
            Look(
                "Time until the GPUs are free",
                "From the deletion request to the end of the last container of the victim. The request follows the "
                f"decision within a second or so, see the step `request`. {_ESTIMATED}",
                unit=SECONDS,
                empty=_NONE,
                width=8,
            ),
            *_quantiles("stop"),
        ),
        stat(
            Look(
                "Time until the victim is replaced, if within an hour",
                "From the decision until the pod that replaces the victim runs; only of victims that were replaced "
                "within an hour. The dashboard Pending has the wait times of preemptors. "
                f"{_ESTIMATED}",
                unit=SECONDS,
                empty="none was replaced within an hour",
                width=8,
            ),
            *_quantiles("replace"),
        ),
        stat(
            Look(
                "Replaced within an hour",
                "The share of preempted pods whose job had a new running pod within an hour. Others waited longer, "
                "their job had ended, or they had no owner.",
                unit=RATIO,
                empty=_NONE,
                width=4,
            ),
            Query(
                f"""{grown_in_all(_count('step="replace"'))} / {grown_in_all(_count('step="stop"'))}""",
                "pods",
            ),
        ),
        stat(
            Look(
                "Beyond the grace period",
                "Disrupted pods that held their GPUs for more than 2 s longer than their grace period.",
                unit=COUNT,
                empty="none",
                steps={1: ORANGE, 10: RED},
                links=(disrupted_pods({}),),
                width=4,
            ),
            Query(grown_in_all(OVERRUN), "pods"),
        ),
        table(
            Look(
                "Duration of preemption steps",
                "`request`: from the decision to the deletion request. `stop`: from there to the end of the last "
                "container. `reuse`: from the release of the GPUs to the next pod on that node. `replace`: from the "
                "decision until the victim's replacement runs. API times have whole seconds. The mean is exact. "
                f"{_ESTIMATED}",
                empty=_NONE,
                width=24,
                height=6,
            ),
            {"step": "Step"},
            Column(head="Pods", expression=grown_in_all(_count(), "step"), unit=COUNT),
            Column(
                head="Mean",
                expression=f"{grown_in_all(_sum(), 'step')} / {grown_in_all(_count(), 'step')}",
                unit=SECONDS,
            ),
            Column(head="p50", expression=_by_step(0.5), unit=SECONDS),
            Column(head="p90", expression=_by_step(0.9), unit=SECONDS),
            Column(head="Max", expression=_by_step(1), unit=SECONDS),
            order="Max",
        ),
    ),
)
