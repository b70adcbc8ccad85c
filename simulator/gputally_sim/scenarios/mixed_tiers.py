"""Scenario S1: inference and training share eight GPUs by five tiers, inference by day, training by night.

Inference is scaled up at 07:30, half an hour before training is scaled down, so it preempts every weekday morning.
Numbers are per eight GPUs and scale with the fleet.
"""

from dataclasses import replace
from random import Random

from gputally_sim.api.registry import Registry
from gputally_sim.control.housekeeping import clear_ended_pods
from gputally_sim.control.owners import owner_reference
from gputally_sim.documents import Key
from gputally_sim.instants import MINUTE_US, SECOND_US
from gputally_sim.naming import choices
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.fleet import Fleet
from gputally_sim.scenarios.timetable import every_day, every_weekday, is_working_time
from gputally_sim.scenarios.workloads import Work

TIERS = {
    "inference-critical": 10000,
    "inference-standard": 5000,
    "training-high": 1000,
    "training-standard": 500,
    "training-low": 100,
}
TEAMS = {"ml-inference": "serving", "ml-training": "foundation", "ml-vision": "vision", "sandbox": ""}
"""Teams by namespace; one namespace has no team."""
INFERENCE = {"llm-api": (4, 2), "embeddings": (2, 0)}
"""Replicas by day and by night."""
TRAINING = {"pretrain": (1, 3), "finetune": (0, 1), "sweep": (0, 1)}
"""Parallelism by day and by night."""

_TRAINING_TIERS = ("training-high", "training-standard", "training-low")
_TRAINING_NAMESPACES = ("ml-training", "ml-vision", "sandbox")
_ENDLESS = 100_000
_FAILURE_RATE = 0.1


def _served(app: str, tier: str, *, starts_s: int, stops_s: int) -> Work:
    starts_us, stops_us = starts_s * SECOND_US, stops_s * SECOND_US
    return Work(app=app, kind="inference", tier=tier, starts_after_us=starts_us, stops_after_us=stops_us)


def _trained(app: str, tier: str, *, minutes: int, stops_s: int) -> Work:
    return Work(
        app=app,
        kind="training",
        tier=tier,
        starts_after_us=20 * SECOND_US,
        lasts_us=minutes * MINUTE_US,
        stops_after_us=stops_s * SECOND_US,
        grace_seconds=60,
    )


_SERVING = (
    _served("llm-api", "inference-critical", starts_s=45, stops_s=8),
    _served("embeddings", "inference-standard", starts_s=20, stops_s=3),
)
_LEARNING: tuple[tuple[str, Work], ...] = (
    ("ml-training", _trained("pretrain", "training-high", minutes=300, stops_s=45)),
    ("ml-training", _trained("finetune", "training-standard", minutes=100, stops_s=25)),
    ("ml-vision", _trained("sweep", "training-low", minutes=35, stops_s=5)),
)
_SCALERS = {
    "scale-training-up": (Work(app="scale-training-up", kind="cron", gpus=0, lasts_us=5 * SECOND_US), "0 18 * * 1-5"),
    "scale-training-down": (
        Work(app="scale-training-down", kind="cron", gpus=0, lasts_us=5 * SECOND_US),
        "0 8 * * 1-5",
    ),
}


class MixedTiers:
    """Scenario S1; `seed` determines the experiments."""

    def __init__(self, registry: Registry, seed: int, fleet: Fleet) -> None:
        self._registry = registry
        self._seed = seed
        self._fleet = fleet
        self._eights = max(1, fleet.gpus // 8)

    def begin(self) -> None:
        """Create all objects as of the current hour, and schedule the recurring actions."""
        now_us = self._registry.agenda.now_us
        self._create_objects()
        self._deploy(night=not is_working_time(now_us, 7.5, 19))
        self._train(night=not is_working_time(now_us, 8, 18))
        self._schedule_recurring()

    def _create_objects(self) -> None:
        for name, value in TIERS.items():
            self._registry.create("priorityclasses", workloads.priority_class(name, value))
        for name, team in TEAMS.items():
            self._registry.create("namespaces", workloads.namespace(name, team))
        for node in self._fleet.nodes():
            self._registry.create("nodes", node)
        for work, schedule in _SCALERS.values():
            self._registry.create("cronjobs", workloads.cron_job(work, schedule), "ml-training")
        self._open_notebook(0)

    def _deploy(self, *, night: bool) -> None:
        for work in _SERVING:
            replicas = INFERENCE[work.app][night] * self._eights
            self._registry.create("deployments", workloads.deployment(work, replicas), "ml-inference")
        self._registry.create("poddisruptionbudgets", workloads.budget("llm-api", 2 * self._eights), "ml-inference")

    def _train(self, *, night: bool) -> None:
        for namespace, work in _LEARNING:
            parallelism = TRAINING[work.app][night] * self._eights
            job = workloads.job(work, work.app, parallelism=parallelism, completions=_ENDLESS)
            self._registry.create("jobs", job, namespace)

    def _schedule_recurring(self) -> None:
        agenda = self._registry.agenda
        every_weekday(agenda, 7.5, lambda _: self._scale_inference(night=False))
        every_weekday(agenda, 8, lambda _: self._scale_training("scale-training-down", night=False))
        every_weekday(agenda, 18, lambda _: self._scale_training("scale-training-up", night=True))
        every_weekday(agenda, 19, lambda _: self._scale_inference(night=True))
        every_weekday(agenda, 18.5, self._submit_experiments)
        every_weekday(agenda, 9, self._open_notebook)
        every_day(agenda, 12, self._submit_checks)
        every_day(agenda, 4, lambda _: clear_ended_pods(self._registry))

    def _scale_inference(self, *, night: bool) -> None:
        for work in _SERVING:
            wanted = {"spec": {"replicas": INFERENCE[work.app][night] * self._eights}}
            self._registry.patch("deployments", ("ml-inference", work.app), wanted)

    def _scale_training(self, scaler: str, *, night: bool) -> None:
        """Scale training as a CronJob with `kubectl scale`."""
        self._run_cron_job(("ml-training", scaler))
        for namespace, work in _LEARNING:
            wanted = {"spec": {"parallelism": TRAINING[work.app][night] * self._eights}}
            self._registry.patch("jobs", (namespace, work.app), wanted)

    def _run_cron_job(self, key: Key) -> None:
        cron_job = self._registry.read("cronjobs", key).doc
        work, _ = _SCALERS[key[1]]
        name = f"{key[1]}-{self._registry.agenda.now_us // MINUTE_US}"
        job = workloads.job(work, name, parallelism=1, completions=1)
        job["metadata"]["ownerReferences"] = [owner_reference(cron_job, "CronJob", "batch/v1")]
        self._registry.create("jobs", job, key[0])

    def _open_notebook(self, _: int) -> None:
        """Create a pod without team and PriorityClass, unless it exists; its user recreates it after preemption."""
        if not self._registry.store.get("pods", ("sandbox", "notebook-lee")):
            notebook = workloads.bare_pod(Work(app="notebook", kind="notebook"), "notebook-lee")
            self._registry.create("pods", notebook, "sandbox")

    def _submit_experiments(self, day: int) -> None:
        """Submit Jobs of 20 minutes to 3 hours for a night; one in ten fails."""
        chance = choices(self._seed, "s1", "experiments", day)
        for index in range(4 * self._eights):
            work = _trained("experiment", chance.choice(_TRAINING_TIERS), minutes=chance.randint(20, 180), stops_s=10)
            self._submit(replace(work, fails=chance.random() < _FAILURE_RATE), f"experiment-{day}-{index}", chance)

    def _submit_checks(self, day: int) -> None:
        """Submit jobs of seconds to minutes by day, when few GPUs are free."""
        chance = choices(self._seed, "s1", "checks", day)
        for index in range(3 * self._eights):
            lasts_us = chance.randint(7, 240) * SECOND_US
            work = Work(app="check", kind="training", tier="training-low", lasts_us=lasts_us)
            self._submit(work, f"check-{day}-{index}", chance)

    def _submit(self, work: Work, name: str, chance: Random) -> None:
        job = workloads.job(work, name, parallelism=1, completions=chance.randint(1, 2))
        self._registry.create("jobs", job, chance.choice(_TRAINING_NAMESPACES))
