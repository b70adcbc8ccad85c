"""The simulated cluster without the HTTP API; all components share one agenda."""

from collections.abc import Collection

from gputally_sim.agenda import Agenda
from gputally_sim.api.admission import SYSTEM_CLASSES
from gputally_sim.api.faults import Faults
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import DEFAULT_WINDOW, Store
from gputally_sim.control.deployments import Deployments
from gputally_sim.control.disruption import Budgets
from gputally_sim.control.jobs import Jobs
from gputally_sim.control.owners import Owners
from gputally_sim.control.quotas import Quotas
from gputally_sim.control.recorder import EventExpiry
from gputally_sim.control.scheduler import Scheduler
from gputally_sim.naming import Naming
from gputally_sim.node.kubelet import Kubelets
from gputally_sim.node.nodes import Nodes
from gputally_sim.scenarios.chaos import Chaos
from gputally_sim.scenarios.fleet import Fleet
from gputally_sim.scenarios.scenario import SCENARIOS

_NAMESPACES = ("default", "kube-system")


class Simulation:
    """Advance with `run_until`; between calls, only direct writes to `registry` have an effect."""

    def __init__(self, *, seed: int, start_us: int, window: int = DEFAULT_WINDOW) -> None:
        self.seed = seed
        self.faults = Faults()
        self.store = Store(window)
        self.agenda = Agenda(start_us)
        self.registry = Registry(self.store, self.agenda, Naming(seed))
        owners = Owners(self.registry)
        kubelets = Kubelets(self.registry)
        self.nodes = Nodes(self.registry, kubelets)
        self._components = (
            owners,
            Scheduler(self.registry, self.faults),
            Deployments(self.registry, owners),
            Jobs(self.registry, owners),
            Budgets(self.registry),
            Quotas(self.registry),
            EventExpiry(self.registry),
        )
        self._populate()

    def run_until(self, us: int) -> None:
        """Run all actions due by `us`, as fast as possible."""
        self.agenda.run_until(us)

    def run_for(self, us: int) -> None:
        """Advance by `us` microseconds."""
        self.run_until(self.agenda.now_us + us)

    def run_scenario(self, name: str, fleet: Fleet | None = None) -> None:
        """Start scenario `name` now, on the nodes of `fleet`; KeyError for an unknown scenario."""
        SCENARIOS[name](self.registry, self.seed, fleet)

    def cause_chaos(self, *, every_us: int, only: Collection[str] = ()) -> Chaos:
        """Inject a fault about every `every_us` from now on, of any kind or `only` of these."""
        chaos = Chaos(self.registry, self.faults, self.nodes, seed=self.seed, every_us=every_us)
        chaos.limit_to(only)
        chaos.begin()
        return chaos

    def _populate(self) -> None:
        """Create the objects that every new cluster has."""
        for name in _NAMESPACES:
            self.registry.create("namespaces", {"metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            self.registry.create("priorityclasses", {"metadata": {"name": name}, "value": value})
