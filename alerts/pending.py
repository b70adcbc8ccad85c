"""Pods that wait for GPUs, and the objective for their wait time."""

from typing import Final

from dashboards.pending import PENDING_PODS
from monitoring.rule import Alert, Group, Recording

_WINDOWS: Final = ("5m", "30m", "1h", "6h", "3d")
_ALL: Final = "gputally_time_to_schedule_seconds_count"
_IN_TIME: Final = "gputally_time_to_schedule_seconds_bucket"
_SOON: Final = 'le=~"$objective_seconds([.]0)?"'
"""Prometheus before 3.0 keeps `le` as exposed, later versions write it as a float: this matches both."""
_SERVING: Final = 'and on (cluster, tier) gputally_tier_info{serving="true"}'
"""Of tiers that serve user traffic, by the aggregator's configuration."""

_REQUESTED: Final = (
    '{{ with printf "max by (tier, tenant) (gputally_pending_gpus{cluster=%q, tier=%q, tenant=%q})" '
    '$labels.cluster $labels.tier $labels.tenant | query }} ({{ . | first | value | printf "%.5g" }} in all){{ end }}'
)
_CAPACITY: Final = "sum by (state) (max by (cluster, gpu_model, pool, state) (gputally_capacity_gpus{cluster=%q, state"
_FREE: Final = (
    f"{{{{ with printf \"{_CAPACITY}='free'}}))\" $labels.cluster | query }}}}"
    '{{ . | first | value | printf "%.5g" }}{{ else }}0{{ end }}'
)
_OTHERS: Final = (
    f"{{{{ range printf \"sort_desc({_CAPACITY}!='free'}})) > 0)\" $labels.cluster | query }}}}"
    ', {{ .Value | printf "%.5g" }} {{ .Labels.state }}{{ end }}'
)
_TERMINATING: Final = (
    '{{ range printf "sum(rate(gputally_allocated_gpu_seconds_total'
    "{cluster=%q, state='terminating'}[5m])) > 0.05\" $labels.cluster | query }}"
    '; terminating pods still have {{ .Value | printf "%.2g" }}{{ end }}'
)
_VICTIMS: Final = (
    "sort_desc(max by (victim_tier, preemptor_tier) (gputally_preempting_victims{cluster=%q, preemptor_tier=%q} "
    "or gputally_preempting_victims{cluster=%q, preemptor_tier='unknown'}) > 0)"
)
_OLDEST: Final = "gputally_preempting_oldest_timestamp_seconds"
_OF_PAIR: Final = "{cluster=%q, victim_tier=%q, preemptor_tier=%q}"
_ITS_LABELS: Final = "$labels.cluster .Labels.victim_tier .Labels.preemptor_tier"
_PREEMPTING: Final = (
    f'{{{{ range printf "{_VICTIMS}" $labels.cluster $labels.tier $labels.cluster | query }}}}'
    " Preempted for pods of tier {{ .Labels.preemptor_tier }} and still terminating: "
    '{{ .Value | printf "%.0f" }} of tier {{ .Labels.victim_tier }}'
    f'{{{{ with printf "max(gputally_preempting_gpus{_OF_PAIR})" {_ITS_LABELS} | query }}}}'
    ' with {{ . | first | value | printf "%.5g" }} GPUs{{ end }}'
    f'{{{{ with printf "time() - min({_OLDEST}{_OF_PAIR})" {_ITS_LABELS} | query }}}}'
    ", the first for {{ . | first | value | humanizeDuration }}{{ end }}."
    "{{ else }} No preemption for this tier is under way.{{ end }}"
)
_REASONS: Final = (
    '{{ with printf "sort_desc(max by (reason) (gputally_pending_reason_pods{cluster=%q, tier=%q}) > 0)" '
    "$labels.cluster $labels.tier | query }} Reasons in this tier:{{ range . }}"
    ' {{ .Labels.reason }} ({{ .Value | printf "%.0f" }}){{ end }}.{{ end }}'
)
"""The page names the cause: lost GPUs, GPUs that are not released, or pods that request more than there is.

It also says why the pods of the tier wait, and whether the scheduler is making room for the tier already; for a moment,
a preemptor may be unknown.
"""


def _recording(window: str) -> Recording:
    return Recording(
        name=_slow_share(window),
        expression=f"""\
1 - sum by (cluster, tier) (rate({_IN_TIME}{{{_SOON}}}[{window}]))
  / sum by (cluster, tier) (rate({_ALL}[{window}]))
""",
        reason=f"Share of pods bound within {window} that waited too long, to compare with the error budget.",
    )


def _slow_share(window: str) -> str:
    return f"cluster_tier:gputally_time_to_schedule_slow:ratio_rate{window}"


def _burning(rate: str, *, over: str, still: str) -> str:
    """The late share is too large over the long and the short window, and enough pods were late."""
    return f"""\
(
  {_slow_share(over)} > {rate} * $objective_allowed
  and
  {_slow_share(still)} > {rate} * $objective_allowed
  and
  sum by (cluster, tier) (increase({_ALL}[{over}]))
    - sum by (cluster, tier) (increase({_IN_TIME}{{{_SOON}}}[{over}])) >= $pods
  {_SERVING}
)
"""


GROUP = Group(
    name="pending",
    interval="1m",
    recordings=tuple(map(_recording, _WINDOWS)),
    alerts=(
        Alert(
            name="InferencePodsPending",
            expression=f"""\
time() - max by (cluster, tier, tenant) (
  gputally_pending_oldest_timestamp_seconds {_SERVING}
) > $seconds
""",
            summary="Inference pods wait for GPUs.",
            description=(
                f"Pods of tier {{{{ $labels.tier }}}} of tenant {{{{ $labels.tenant }}}} wait for GPUs{_REQUESTED}, "
                f"the oldest for {{{{ $value | humanizeDuration }}}}.{_REASONS} Of the cluster's GPUs "
                f"{_FREE} are free{_OTHERS}{_TERMINATING}.{_PREEMPTING} `kubectl gputally why --all` says what each "
                "pod waits for and what would help. Otherwise wait for victims that terminate, repair unknown, "
                "unhealthy or cordoned nodes, or check which tiers have the allocated GPUs."
            ),
            dashboard="pending",
            panel=PENDING_PODS,
            variables=("cluster", "tier", "tenant"),
        ),
        Alert(
            name="GputallyGpuPodsStarving",
            expression="""\
time() - max by (cluster, tier, tenant) (gputally_pending_oldest_timestamp_seconds)
  > on (cluster, tier) group_left () max by (cluster, tier) (gputally_tier_pending_limit_seconds)
""",
            summary="Pods have waited for GPUs longer than their tier allows.",
            description=(
                "The oldest pod of tier {{ $labels.tier }} of tenant {{ $labels.tenant }} has waited for GPUs for "
                f"{{{{ $value | humanizeDuration }}}}{_REQUESTED}.{_REASONS} Of the cluster's GPUs {_FREE} are "
                f"free{_OTHERS}. "
                "Check whether a quota, a gang or the size of the pod blocks it, and whether tiers of higher priority "
                "leave it any GPUs."
            ),
            dashboard="pending",
            panel=PENDING_PODS,
            variables=("cluster", "tier", "tenant"),
        ),
        Alert(
            name="GputallyPriorityInversion",
            expression='max by (cluster, tier) (gputally_pending_finding_pods{finding="inversion"}) > 0\n',
            summary="Inference pods wait for pods that serve no users.",
            description=(
                '{{ $value | printf "%.0f" }} pods of tier {{ $labels.tier }}, which serves users, wait for GPUs that '
                "pods of other tiers hold at the same or a higher priority, so that they are never preempted. Compare "
                "the values of the PriorityClasses."
            ),
            dashboard="pending",
            variables=("cluster", "tier"),
        ),
        Alert(
            name="GputallyPartialGang",
            expression="sum by (cluster) (max by (cluster, tier) (gputally_partial_gangs)) > 0\n",
            summary="Gangs hold GPUs and wait for the rest of their pods.",
            description=(
                '{{ $value | printf "%.0f" }} gangs have some of their pods bound and others pending: the GPUs of the '
                "bound ones are paid and do nothing.{{ with printf "
                '"max by (cluster) (gputally_deadlocked_gangs{cluster=%q}) > 0" $labels.cluster | query }} '
                '{{ . | first | value | printf "%.0f" }} of them wait for each other.{{ end }} Find out what the '
                "pending ones wait for (kubectl gputally why --all), and release the others if that lasts."
            ),
            dashboard="pending",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyNoServingTier",
            expression="""\
sum by (cluster) (max by (cluster, tier, tenant) (gputally_pending_pods)) > 0
unless on (cluster) gputally_tier_info{serving="true"}
unless on (cluster) gputally_serving_expected == 0
""",
            summary="Pods wait for GPUs, and no tier pages for them.",
            description=(
                '{{ $value | printf "%.0f" }} pods wait for GPUs, but no tier of the cluster serves user traffic by '
                "its configuration, so InferencePodsPending cannot fire. List the serving tiers as `serving` in the "
                "configuration of the aggregator, or write `serving: []` if the cluster only trains."
            ),
            dashboard="pending",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyServingPatternUnmatched",
            expression="max by (cluster) (gputally_serving_patterns_unmatched) > 0\n",
            summary="A serving tier in the configuration does not exist.",
            description=(
                '{{ $value | printf "%.0f" }} patterns in `serving` match no tier of the cluster, so the pods that '
                "they are meant for cannot page. Compare them with the tiers in gputally_tier_info, and correct the "
                "spelling."
            ),
            dashboard="pending",
            variables=("cluster",),
        ),
        Alert(
            name="GputallyTimeToScheduleBurnFast",
            expression=_burning("$burn", over="1h", still="5m"),
            summary="Many inference pods were bound too late in the last hour.",
            description=(
                "In the last hour, {{ $value | humanizePercentage }} of the pods of tier {{ $labels.tier }} waited "
                "longer than $objective_seconds s for GPUs: this burns the 30-day error budget $burn times too fast. "
                "Check how many GPUs were requested then, and keep that many free or preemptible."
            ),
            dashboard="pending",
            variables=("cluster", "tier"),
        ),
        Alert(
            name="GputallyTimeToScheduleBurnSlow",
            expression="or\n".join(
                (_burning("$burn", over="6h", still="30m"), _burning("$long_burn", over="3d", still="6h"))
            ),
            summary="Inference pods are repeatedly bound too late.",
            description=(
                "The 30-day objective will be missed: for hours, {{ $value | humanizePercentage }} of the pods of tier "
                "{{ $labels.tier }} have waited longer than $objective_seconds s for GPUs. Find the times of day when "
                "this happens, and plan capacity or preemption for them."
            ),
            dashboard="pending",
            variables=("cluster", "tier"),
        ),
    ),
)
