"""Scenario S2: four tiers with preemption rules, tenants with quotas, 8-GPU training next to 1-GPU notebooks.

Training may preempt serving, batch and interactive; interactive never preempts. Each pod of a PyTorchJob needs all
eight GPUs of a node.
"""

from gputally_sim.api.registry import Registry
from gputally_sim.control.housekeeping import clear_ended_pods
from gputally_sim.instants import HOUR_US, MINUTE_US, SECOND_US
from gputally_sim.naming import choices
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.fleet import Fleet
from gputally_sim.scenarios.timetable import day_of, every_day, every_weekday, is_working_time
from gputally_sim.scenarios.workloads import Work

TIERS = {"gpu-training": 1000, "gpu-serving": 800, "gpu-batch": 400, "gpu-interactive": 200}
NEVER_PREEMPTS = "gpu-interactive"
TENANTS = ("tenant-alpha", "tenant-beta", "tenant-gamma")
QUOTAS = {"gpu-training": 16, "gpu-serving": 6, "gpu-batch": 8, "gpu-interactive": 4}
"""GPUs per tenant and tier."""
GPUS_PER_TRAINER = 8

_PEOPLE = ("ada", "grace", "edsger")
_SERVER = Work(app="serving", kind="inference", tier="gpu-serving", starts_after_us=30 * SECOND_US)
_NOTEBOOK = Work(app="notebook", kind="notebook", tier="gpu-interactive", starts_after_us=15 * SECOND_US)


class TenantQuotas:
    """Scenario S2; `seed` determines the workloads and their durations."""

    def __init__(self, registry: Registry, seed: int, fleet: Fleet) -> None:
        self._registry = registry
        self._seed = seed
        self._fleet = fleet

    def begin(self) -> None:
        """Create all objects, and schedule the recurring actions."""
        self._create_objects()
        for tenant in TENANTS:
            self._registry.create("deployments", workloads.deployment(_SERVER, 2), tenant)
        agenda = self._registry.agenda
        today = day_of(agenda.now_us)
        if is_working_time(agenda.now_us, 9, 18):
            self._open_notebooks(today)
        self._submit_batch(today)
        every_weekday(agenda, 9, self._open_notebooks)
        every_weekday(agenda, 10.5, self._train)
        every_weekday(agenda, 18, self._close_notebooks)
        every_day(agenda, 20, self._submit_batch)
        every_day(agenda, 22, self._train)
        every_day(agenda, 4, lambda _: clear_ended_pods(self._registry))

    def _create_objects(self) -> None:
        for name, value in TIERS.items():
            described = workloads.priority_class(name, value, preempts=name != NEVER_PREEMPTS)
            self._registry.create("priorityclasses", described)
        for node in self._fleet.nodes():
            self._registry.create("nodes", node)
        for tenant in TENANTS:
            self._registry.create("namespaces", workloads.namespace(tenant, tenant.removeprefix("tenant-")))
            for tier, gpus in QUOTAS.items():
                self._registry.create("resourcequotas", workloads.quota(tier, gpus), tenant)

    def _open_notebooks(self, _: int) -> None:
        """Create one notebook per person; the last person of each tenant omits the PriorityClass."""
        for tenant in TENANTS:
            for person in _PEOPLE:
                work = _NOTEBOOK if person != _PEOPLE[-1] else Work(app="notebook", kind="notebook")
                name = f"notebook-{person}"
                if not self._registry.store.get("pods", (tenant, name)):
                    self._registry.create("pods", workloads.bare_pod(work, name), tenant)

    def _close_notebooks(self, _: int) -> None:
        for tenant in TENANTS:
            for person in _PEOPLE:
                key = tenant, f"notebook-{person}"
                if self._registry.store.get("pods", key):
                    self._registry.delete("pods", key)

    def _submit_batch(self, day: int) -> None:
        for tenant in TENANTS:
            chance = choices(self._seed, "s2", "batch", tenant, day)
            lasts_us = chance.randint(20, 240) * MINUTE_US
            work = Work(app="batch", kind="batch", tier="gpu-batch", gpus=chance.choice((1, 2)), lasts_us=lasts_us)
            name = f"batch-{day}-{self._hour()}"
            job = workloads.job(work, name, parallelism=2, completions=chance.randint(2, 6))
            self._registry.create("jobs", job, tenant)

    def _hour(self) -> int:
        return self._registry.agenda.now_us // HOUR_US % 24

    def _train(self, day: int) -> None:
        """Create one PyTorchJob of a tenant: a master and optionally a worker, each on a full node."""
        hour = self._hour()
        chance = choices(self._seed, "s2", "training", day, hour)
        tenant = chance.choice(TENANTS)
        lasts_us = chance.randint(45, 200) * MINUTE_US
        work = Work(
            app="llm",
            kind="training",
            tier="gpu-training",
            gpus=GPUS_PER_TRAINER,
            starts_after_us=40 * SECOND_US,
            lasts_us=lasts_us,
            stops_after_us=20 * SECOND_US,
        )
        name = f"llm-{day}-{hour}"
        uid = self._registry.naming.uid("pytorchjobs", (tenant, name))
        for role in ("master", "worker")[: chance.randint(1, 2)]:
            self._registry.create("pods", workloads.training_pod(work, name, uid, role=role), tenant)
