"""Links to pages of the aggregator that name the pods and jobs behind the metrics of preemptions."""

from collections.abc import Mapping
from typing import Final

from monitoring.link import TIME_RANGE, AggregatorLink

BY_TENANT: Final = {"tenant": "tenant", "tier": "tier"}
"""Filters of these pages by label."""
BY_VICTIM: Final = {"tenant": "victim_tenant", "tier": "victim_tier"}
_PREEMPTIONS: Final = "/api/v1/preemptions"
_TABLE: Final = {"window": TIME_RANGE, "format": "table"}

ENDED_EARLY: Final = AggregatorLink(
    "Names of the jobs that ended early",
    "/api/v1/report",
    {"window": TIME_RANGE, "by": "job,job_outcome", "job_outcome": "*_early", "format": "html"},
    BY_TENANT,
)
AT_RISK: Final = AggregatorLink("Its jobs and nodes", "/api/v1/at-risk", {}, BY_TENANT)
BOUGHT: Final = AggregatorLink("What they bought, destroyed and left unused", _PREEMPTIONS, _TABLE)


def preempted_jobs(labels: Mapping[str, str]) -> AggregatorLink:
    """The preempted jobs with these labels."""
    title = "Preempted jobs: names, rule, loss and advice"
    return AggregatorLink(title, _PREEMPTIONS, {**_TABLE, "by": "job"}, labels)


def disrupted_pods(labels: Mapping[str, str]) -> AggregatorLink:
    """The disrupted pods with these labels."""
    return AggregatorLink("Disrupted pods: names, nodes and steps", _PREEMPTIONS, _TABLE, labels)
