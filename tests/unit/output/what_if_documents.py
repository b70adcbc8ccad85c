"""Forecasts of `gputally what-if`."""

from msgspec.structs import replace

from gputally.model.api.what_if import AfterWaiting, PodForecast, WhatIfDocument
from gputally.model.api.why import ObstacleText
from tests.unit.output.why_documents import NEEDS, NOON, SWEEP

FORECAST = PodForecast(
    name="Job ml/train",
    pods=2,
    gpus=8,
    tier="training",
    class_name="gpu-training",
    priority=1000,
    may_preempt=True,
    needs=NEEDS,
    bound=2,
    nodes=["gpu-1", "gpu-3"],
)
EXAMPLE = WhatIfDocument(
    at=NOON,
    currency="USD",
    forecasts=[
        replace(
            FORECAST,
            name="Job ml-research/train",
            bound=1,
            nodes=["gpu-3"],
            victims=[replace(SWEEP, budget="lab/sweep")],
            reason="capacity",
            text="pods of the same or a higher priority hold what it needs",
            obstacles=[ObstacleText(kind="resource", text="gpu-1: 8 GPUs needed, 0 available", node="gpu-1")],
            others_waiting=3,
            after_waiting=AfterWaiting(placed=0, bound=1),
        )
    ],
    lost_gpu_hours=2.5,
    lost_cost="9.375",
    not_considered={
        "resourcequotas": "they are not watched; start the aggregator with --watch=resourcequotas",
    },
)
"""The one of the documentation."""
