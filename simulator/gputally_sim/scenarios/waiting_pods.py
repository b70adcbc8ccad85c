"""Scenario `waits`: pods that wait for different reasons, for as long as it runs.

- Two PyTorchJobs have half of their pods each, and wait for each other: kube-scheduler places no gangs.
- Inference has the priority of training, one digit short of what was meant, and gets no GPU that training holds.
- An evaluation, whose class never preempts, needs a whole node. Sweeps of a lower priority get every GPU before it.
- Some GPUs stay free, as pods without GPUs have taken the CPUs beside them, so one of the sweeps waits.
- A pod asks for more GPUs than a node has, one for two GPUs of which each is on another node, one for a model that no
  node has. One waits at a gate, one for Kueue, one for a ResourceClaim, one for a scheduler that nobody runs.
- The pods of a Job need more than its quota can ever admit, those of another one name a class that does not exist.
"""

from dataclasses import replace
from typing import Final

from gputally_sim.api.refusals import log_rejections
from gputally_sim.api.registry import Registry
from gputally_sim.instants import MINUTE_US, SECOND_US
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.fleet import Fleet
from gputally_sim.scenarios.workloads import Work

TIERS: Final = {
    "inference-critical": 10000,
    "inference-standard": 500,  # 5000 was meant
    "training-high": 1000,
    "training-standard": 500,
    "training-low": 100,
}
NEVER_PREEMPTS: Final = "training-standard"
TEAMS: Final = {"ml-inference": "serving", "ml-training": "foundation", "ml-vision": "vision", "sandbox": ""}
"""Teams by namespace; one namespace has no team."""
NO_CLASS: Final = "training-lowest"
"""No PriorityClass has this name."""

_H100: Final = "NVIDIA-H100-80GB-HBM3"
_A100: Final = "NVIDIA-A100-SXM4-80GB"
_T4: Final = "Tesla-T4"
_ENDLESS: Final = 100_000
_SCALED_AFTER_US: Final = 20 * MINUTE_US

_PRETRAIN: Final = Work(
    app="pretrain", kind="training", tier="training-high", gpus=8, gpu_model=_H100, starts_after_us=40 * SECOND_US
)
_GANGS: Final = (("ml-training", "llm-pretrain"), ("ml-vision", "vlm-pretrain"))
_SERVER: Final = Work(
    app="llm-api",
    kind="inference",
    tier="inference-standard",
    gpus=2,
    gpu_model=_A100,
    starts_after_us=45 * SECOND_US,
)
_FINETUNE: Final = Work(app="finetune", kind="training", tier="training-standard", gpu_model=_A100)
_DISTILLATION: Final = Work(app="distill", kind="training", tier="training-low", gpu_model=_T4)
_PREPROCESSING: Final = Work(app="preprocess", kind="batch", tier="training-low", gpus=0, gpu_model=_T4, cpus=24)
_SWEEP: Final = Work(
    app="sweep",
    kind="training",
    tier="training-low",
    gpu_model=_T4,
    starts_after_us=20 * SECOND_US,
    lasts_us=25 * MINUTE_US,
)
_UNSCHEDULED: Final = {
    "ablation": {"schedulingGates": [{"name": "example.org/budget-approval"}]},
    "distributed": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]},
    "alignment": {"resourceClaims": [{"name": "gpus", "resourceClaimName": "two-gpus"}]},
    "rendering": {"schedulerName": "volcano"},
}
"""What keeps these pods from being scheduled, by their names."""
_EVALUATION: Final = Work(app="evaluate", kind="training", tier=NEVER_PREEMPTS, gpus=4, gpu_model=_T4)


class WaitingPods:
    """Scenario `waits`. Nothing in it is random."""

    def __init__(self, registry: Registry, fleet: Fleet) -> None:
        self._registry = registry
        self._fleet = fleet

    def begin(self) -> None:
        """Create all objects; the last server and the evaluation come later, when all GPUs are taken."""
        self._create_objects()
        self._create_gangs()
        self._fill_a100s()
        self._fill_t4s()
        self._create_misfits()
        self._create_unscheduled()
        self._create_refused()
        self._registry.agenda.after(_SCALED_AFTER_US, self._ask_for_more)

    def _create_objects(self) -> None:
        for name, value in TIERS.items():
            described = workloads.priority_class(name, value, preempts=name != NEVER_PREEMPTS)
            self._registry.create("priorityclasses", described)
        for name, team in TEAMS.items():
            self._registry.create("namespaces", workloads.namespace(name, team))
        for node in self._fleet.nodes():
            self._registry.create("nodes", node)

    def _create_gangs(self) -> None:
        """Both masters are bound before the first worker, so each job has one of the two nodes."""
        for role in ("master", "worker"):
            for namespace, name in _GANGS:
                uid = self._registry.naming.uid("pytorchjobs", (namespace, name))
                pod = workloads.training_pod(_PRETRAIN, name, uid, role=role)
                self._registry.create("pods", pod, namespace)

    def _fill_a100s(self) -> None:
        self._registry.create("deployments", workloads.deployment(_SERVER, 2), "ml-inference")
        job = workloads.job(_FINETUNE, _FINETUNE.app, parallelism=2, completions=_ENDLESS)
        self._registry.create("jobs", job, "ml-training")

    def _fill_t4s(self) -> None:
        """One pod stays on each node, so that sweeps which end together never leave a whole node."""
        for size in ("small", "tiny"):
            self._registry.create("pods", workloads.bare_pod(_DISTILLATION, f"distill-{size}"), "ml-vision")
            self._registry.create("pods", workloads.bare_pod(_PREPROCESSING, f"preprocess-{size}"), "ml-vision")
        job = workloads.job(_SWEEP, _SWEEP.app, parallelism=5, completions=_ENDLESS)
        self._registry.create("jobs", job, "ml-vision")

    def _create_misfits(self) -> None:
        too_large = replace(_PRETRAIN, app="llm", gpus=16)
        self._registry.create("pods", workloads.bare_pod(too_large, "llm-16-gpus"), "ml-training")
        mistyped = replace(_FINETUNE, app="transcode", gpu_model=_A100.removesuffix("B"))
        self._registry.create("pods", workloads.bare_pod(mistyped, "transcode"), "ml-vision")
        scattered = replace(_FINETUNE, app="export", tier="training-low", gpus=2)
        self._registry.create("pods", workloads.bare_pod(scattered, "export"), "ml-vision")

    def _create_unscheduled(self) -> None:
        """Pods at which the scheduler does not look, or for whose claim no node has a device."""
        for name, spec in _UNSCHEDULED.items():
            pod = workloads.bare_pod(replace(_FINETUNE, app=name, gpus=2), name)
            self._registry.create("pods", pod | {"spec": pod["spec"] | spec}, "ml-training")

    def _create_refused(self) -> None:
        self._registry.create("resourcequotas", workloads.quota("training-low", 1), "sandbox")
        beyond = replace(_SWEEP, app="classifier", gpus=2)
        self._registry.create("jobs", workloads.job(beyond, beyond.app, parallelism=1, completions=1), "sandbox")
        refused = workloads.job(_SWEEP, "regression", parallelism=1, completions=1)
        refused["spec"]["template"]["spec"]["priorityClassName"] = NO_CLASS
        self._registry.create("jobs", refused, "sandbox")

    def _ask_for_more(self) -> None:
        with log_rejections():
            self._registry.patch("deployments", ("ml-inference", _SERVER.app), {"spec": {"replicas": 3}})
            self._registry.create("pods", workloads.bare_pod(_EVALUATION, "evaluate"), "ml-vision")
