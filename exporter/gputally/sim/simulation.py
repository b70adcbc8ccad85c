"""The simulated cluster without its HTTP face: everything that happens, on one agenda."""

from gputally.sim.admission import SYSTEM_CLASSES
from gputally.sim.agenda import Agenda
from gputally.sim.deployments import Deployments
from gputally.sim.disruption import Budgets
from gputally.sim.faults import Faults
from gputally.sim.fleet import Fleet
from gputally.sim.hardship import Hardship
from gputally.sim.jobs import Jobs
from gputally.sim.kubelet import Kubelets
from gputally.sim.naming import Naming
from gputally.sim.nodes import Nodes
from gputally.sim.owners import Owners
from gputally.sim.recorder import EventExpiry
from gputally.sim.registry import Registry
from gputally.sim.scenario import SCENARIOS
from gputally.sim.scheduler import Scheduler
from gputally.sim.store import DEFAULT_WINDOW, Store

_NAMESPACES = ("default", "kube-system")


class Simulation:
    """Advance it with `run_until`; between calls nothing happens but what `registry` is told to do."""

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
            EventExpiry(self.registry),
        )
        self._populate()

    def run_until(self, us: int) -> None:
        """Let everything happen that is due by `us`, as fast as it can be computed."""
        self.agenda.run_until(us)

    def run_for(self, us: int) -> None:
        """Let `us` microseconds pass."""
        self.run_until(self.agenda.now_us + us)

    def run_scenario(self, name: str, fleet: Fleet | None = None) -> None:
        """Begin scenario `name` now, on the nodes of `fleet`; KeyError for a name not in SCENARIOS."""
        SCENARIOS[name](self.registry, self.seed, fleet)

    def make_hard(self, *, every_us: int) -> Hardship:
        """From now on something goes wrong about every `every_us`."""
        hardship = Hardship(self.registry, self.faults, self.nodes, seed=self.seed, every_us=every_us)
        hardship.begin()
        return hardship

    def _populate(self) -> None:
        """What every new cluster has."""
        for name in _NAMESPACES:
            self.registry.create("namespaces", {"metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            self.registry.create("priorityclasses", {"metadata": {"name": name}, "value": value})
