"""Panels on preemptions that several dashboards show."""

from typing import Any

from dashboards.rows.aggregator_pages import BOUGHT
from monitoring.link import Link
from monitoring.panel import Column, Look, Query, counts, stat, table
from monitoring.selector import grown_in_all, grown_per_bar
from monitoring.unit import COUNT, GPUS

_OF_TIERS = '{cluster=~"$cluster", victim_tier=~"$tier"}'
OF_VICTIMS = '{cluster=~"$cluster", victim_tier=~"$tier", victim_tenant=~"$tenant"}'
PREEMPTIONS = f"gputally_preemptions_total{_OF_TIERS}"
PREEMPTED_GPUS = f"gputally_preempted_gpus_total{_OF_TIERS}"
TENANT_PREEMPTIONS = f"gputally_tenant_preemptions_total{OF_VICTIMS}"


def preemption_count(*, width: int | None = None, height: int | None = None) -> Any:  # noqa: ANN401 - grafanalib has no types
    """How many there were."""
    look = Look(
        "Preemptions",
        "Pods with GPUs that the scheduler preempted in the time range, of all tenants.",
        unit=COUNT,
        empty="no data from the exporter",
        width=width,
        height=height,
    )
    return stat(look, Query(grown_in_all(PREEMPTIONS), "preemptions"))


def preempted_gpus(*, height: int | None = None) -> Any:  # noqa: ANN401 - as above
    """How many GPUs they took."""
    look = Look(
        "Preempted GPUs",
        "GPUs that those pods had when they were preempted.",
        unit=GPUS,
        empty="no data from the exporter",
        height=height,
    )
    return stat(look, Query(grown_in_all(PREEMPTED_GPUS), "GPUs"))


def by_victim_tier() -> Any:  # noqa: ANN401 - as above
    """When they were."""
    look = Look(
        "Preemptions by victim tier",
        "By the tier of the pods that lost their GPUs. Each bar is an hour, or longer in long time ranges.",
        unit=COUNT,
        empty="no data from the exporter",
        width=16,
    )
    query = f"sum by (victim_tier) (round({grown_per_bar(PREEMPTIONS)}))"
    return counts(look, Query(query, "{{victim_tier}}"))


def by_preemptor(title: str, *, order: str) -> Any:  # noqa: ANN401 - as above
    """Who took GPUs from whom."""
    look = Look(
        title,
        "GPUs that preempted pods of all tenants had, by the tier that they were preempted for. A tier that loses GPUs"
        " to a lower one has the wrong priority. `unknown` is a preemptor that no Event named.",
        empty="no preemptions",
        links=(Link("Pending pods of this tier", "pending", {"tier": "preemptor_tier"}),),
        width=12,
    )
    pair = ("preemptor_tier", "victim_tier")
    return table(
        look,
        {"preemptor_tier": "Preemptor", "victim_tier": "Victim"},
        Column(head="Preemptions", expression=f"{grown_in_all(PREEMPTIONS, *pair)} > 0", unit=COUNT),
        Column(head="Preempted GPUs", expression=f"{grown_in_all(PREEMPTED_GPUS, *pair)} > 0", unit=GPUS),
        order=order,
    )


def by_tier() -> Any:  # noqa: ANN401 - as above
    """What each tier took from others, and lost to others."""
    look = Look(
        "Tiers: who gained and who lost",
        "Preempted pods of all tenants and the GPUs that they had: by the tier that they were preempted for, which "
        "may have needed fewer, and by the tier that lost them. A GPU counts each time it is preempted. The filter "
        "is on the victims' tier. Click a tier for the GPU-hours that preemptions bought, destroyed and left "
        "unused; `gputally preemptions --output csv` has the tenants of preemptors.",
        empty="no preemptions",
        links=(BOUGHT, Link("Pending pods of this tier", "pending", {"tier": "tier"})),
        width=12,
    )
    return table(
        look,
        {"tier": "Tier"},
        Column(head="Pods preempted for it", expression=_of_tier(PREEMPTIONS, "preemptor_tier"), unit=COUNT),
        Column(head="GPUs preempted for it", expression=_of_tier(PREEMPTED_GPUS, "preemptor_tier"), unit=GPUS),
        Column(head="Pods lost", expression=_of_tier(PREEMPTIONS, "victim_tier"), unit=COUNT),
        Column(head="GPUs lost", expression=_of_tier(PREEMPTED_GPUS, "victim_tier"), unit=GPUS),
        order="GPUs preempted for it",
    )


def _of_tier(counter: str, side: str) -> str:
    """What it grew by, by the tier on that side of the preemptions."""
    return f'sum by (tier) (label_replace({grown_in_all(counter, side)}, "tier", "$1", "{side}", "(.*)")) > 0'


def preemptions_of_tenants() -> Column:
    """How many, by tenant and tier of the victims."""
    expression = f"{grown_in_all(TENANT_PREEMPTIONS, 'victim_tenant', 'victim_tier')} > 0"
    return Column(head="Preemptions", expression=expression, unit=COUNT)
