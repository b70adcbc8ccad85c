"""Adds to the demo's scenario s1 what its jobs leave out: exits with 0 after SIGTERM, and pods of four GPUs.

S1: trainers that save on SIGTERM and exit 0, as the practitioners' own, with a rule for disruptions and without.
S4: jobs that hold all four GPUs of a node, until one pod of one GPU needs one of them.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from gputally.accounting.jobs.checkpoints import CHECKPOINT_INTERVAL, SAVES_ON_SIGTERM
from gputally_sim.api.registry import Registry
from gputally_sim.documents import Doc
from gputally_sim.instants import HOUR_US, SECOND_US
from gputally_sim.node.kubelet import EXIT_ON_TERM
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.fleet import POOL_LABEL, NodePool, node
from gputally_sim.scenarios.timetable import every_weekday
from gputally_sim.scenarios.workloads import Work

QUAD: Final = NodePool("a100-quad", 1, 4, instance_type="a2-ultragpu-4g")
_TAINT: Final = {"key": "dedicated", "value": "quad", "effect": "NoSchedule"}
_BURST: Final = Work(
    app="llm-burst",
    kind="inference",
    tier="inference-critical",
    starts_after_us=45 * SECOND_US,
    stops_after_us=8 * SECOND_US,
)
_BURSTS: Final = {8.7: 1.0, 11.2: 0.5, 13.4: 0.5, 16.1: 1.0, 23.3: 0.5}
"""Hours of the day, and how many hours the burst lasts."""
_TRAINED: Final = Work(app="", kind="training", tier="training-standard", gpus=4, grace_seconds=60)


def begin(registry: Registry) -> None:
    """Create the node, and schedule the jobs and bursts of each weekday. The scenario s1 has begun."""
    quad = node(QUAD, 0)
    quad["spec"]["taints"] = [_TAINT]
    registry.create("nodes", quad)
    registry.create("deployments", _pinned(workloads.deployment(_BURST, 0)), "ml-inference")
    registry.create("poddisruptionbudgets", workloads.budget("finetune-70b", 1), "ml-training")
    for hour, lasts in _BURSTS.items():
        every_weekday(registry.agenda, hour, lambda _: _scale_burst(registry, 1))
        every_weekday(registry.agenda, hour + lasts, lambda _: _scale_burst(registry, 0))
    every_weekday(registry.agenda, 7, partial(_submit_finetuning, registry))
    every_weekday(registry.agenda, 20, partial(_submit_ablation, registry))
    every_weekday(registry.agenda, 19.25, partial(_submit_trainers, registry))


def _scale_burst(registry: Registry, replicas: int) -> None:
    registry.patch("deployments", ("ml-inference", _BURST.app), {"spec": {"replicas": replicas}})


def _submit_finetuning(registry: Registry, day: int) -> None:
    """S4: six hours on four GPUs, a checkpoint each hour, and no rule for disruptions: each one is a failure."""
    work = replace(_TRAINED, app="finetune-70b", lasts_us=6 * HOUR_US, stops_after_us=50 * SECOND_US)
    job = _pinned(_without_rule(_job(work, day)))
    _annotate(job, {CHECKPOINT_INTERVAL: "1h"})
    registry.create("jobs", job, "ml-training")


def _submit_ablation(registry: Registry, day: int) -> None:
    """S4: the same without a checkpoint, by another tenant."""
    work = replace(_TRAINED, app="ablation", lasts_us=6 * HOUR_US, stops_after_us=35 * SECOND_US)
    registry.create("jobs", _pinned(_job(work, day)), "ml-vision")


def _submit_trainers(registry: Registry, day: int) -> None:
    """S1: the practitioners' trainer, of which the morning's inference finds one with the rule and one without."""
    work = replace(_TRAINED, app="distill", gpus=1, lasts_us=14 * HOUR_US, stops_after_us=20 * SECOND_US)
    exits_0 = {EXIT_ON_TERM: "0", SAVES_ON_SIGTERM: "true"}
    distill = _job(work, day)
    _annotate(distill, exits_0)
    registry.create("jobs", distill, "ml-training")
    retrain = _without_rule(_job(replace(work, app="retrain", tier="training-low"), day))
    _annotate(retrain, exits_0)
    registry.create("jobs", retrain, "ml-vision")


def _job(work: Work, day: int) -> Doc:
    return workloads.job(work, f"{work.app}-{day}", parallelism=1, completions=1)


def _without_rule(job: Doc) -> Doc:
    job["spec"].pop("podFailurePolicy")
    return job


def _annotate(job: Doc, annotations: dict[str, str]) -> None:
    job["spec"]["template"]["metadata"]["annotations"] |= annotations


def _pinned(owner: Doc) -> Doc:
    """A Deployment or Job whose pods run on the node of four GPUs."""
    spec = owner["spec"]["template"]["spec"]
    spec["nodeSelector"] = {POOL_LABEL: QUAD.name}
    spec["tolerations"] = [{"key": _TAINT["key"], "operator": "Exists"}]
    return owner
