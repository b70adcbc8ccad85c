"""Trouble at random moments of the model's time, as a cluster has it in a bad year: one call makes any scenario hard.

It ends nobody else's pod. Clocks that are wrong, and nodes out of reach, change what their kubelets report, and when.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import cycle

from gputally_sim.api.faults import Faults
from gputally_sim.api.refusals import outlived, patiently
from gputally_sim.api.registry import Registry
from gputally_sim.documents import Doc
from gputally_sim.instants import DAY_US, SECOND_US
from gputally_sim.naming import choices
from gputally_sim.node.nodes import POD_GC_US, Nodes
from gputally_sim.node.pods import GPU
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.fleet import NodePool, gpu_node
from gputally_sim.scenarios.workloads import Work

NAMESPACE = "chaos"
REBORN = "reborn"
"""The name of one pod after another, each of which runs for a second; and of the node they are on."""
VANISHING = "vanishing"
"""The name of one node after another, and of a pod on it that is taken by surprise."""

_TAINT = {"key": "gputally.io/chaos", "value": "true", "effect": "NoSchedule"}
MAX_SKEW_S = 30
"""How far off a clock is at most."""
FORGED: tuple[Doc, ...] = (
    {"apiVersion": "v1", "kind": "../../pods#", "name": "all"},
    {"apiVersion": "v1", "kind": "Pod", "name": "?watch=true#"},
    {"apiVersion": "v1", "kind": "Node", "name": ".."},
    {"apiVersion": "invented.example/v1", "kind": "Invented", "name": "unknown"},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone"},
)
"""What the pods say that owns them: a real server takes anything that is not empty."""

_LIVES = 3
_REFUSALS = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True)
class Deed:
    """What was done when, and to whom where that is somebody."""

    at_us: int
    fault: str
    target: str = ""


class Chaos:
    """Does something bad about every `every_us` of model time; what lasts, lasts up to as long."""

    def __init__(self, registry: Registry, faults: Faults, nodes: Nodes, *, seed: int, every_us: int) -> None:
        self.actions: list[Deed] = []
        """Everything done so far."""
        self._registry = registry
        self._faults = faults
        self._nodes = nodes
        self._every_us = every_us
        self._over = False
        self._random = choices(seed, "chaos")
        self._forged = cycle(FORGED)
        self._troubles: dict[str, Callable[[], str | None]] = {
            "drop": self._drop,
            "cut": self._cut,
            "trickle": self._trickle,
            "stall": self._stall,
            "refuse": self._refuse,
            "misdate": self._misdate,
            "expire": self._expire,
            "list by pages": self._list_by_pages,
            "freeze bookmarks": self._freeze_bookmarks,
            "lose events": self._lose_events,
            "garble": self._garble,
            "mistype": self._mistype,
            "repeat": self._repeat,
            "reorder": self._reorder,
            "unready": self._unready,
            "unreachable": self._unreachable,
            "cordon": self._cordon,
            "skew": self._skew,
            "reborn": self._reborn,
            "vanish": self._vanish,
            "register anew": self._register_anew,
        }

    @property
    def fault_names(self) -> tuple[str, ...]:
        """All it can do, by name."""
        return tuple(self._troubles)

    def begin(self) -> None:
        """Lay out what it has of its own, and begin to do harm soon."""
        self._registry.create("namespaces", workloads.namespace(NAMESPACE))
        for name in (REBORN, VANISHING):
            self._add_node(name)
        self._await_next()

    def end(self) -> None:
        """Do no more, and take away the pods it has of its own; what still lasts ends soon."""
        self._over = True
        for name in (REBORN, VANISHING):
            if self._registry.store.get("pods", (NAMESPACE, name)):
                self._registry.delete("pods", (NAMESPACE, name), grace_seconds=0)

    def do(self, fault: str) -> None:
        """Make one of `fault_names` now."""
        with outlived():
            target = self._troubles[fault]()
            self.actions.append(Deed(self._registry.agenda.now_us, fault, target or ""))

    def _await_next(self) -> None:
        pause_us = int(self._random.expovariate(1 / self._every_us))
        self._registry.agenda.after(pause_us, self._strike)

    def _strike(self) -> None:
        if not self._over:
            self.do(self._random.choice(self.fault_names))
            self._await_next()

    def _later(self, action: Callable[[], object]) -> None:
        """End what lasts."""
        lasts_us = int(self._every_us * self._random.uniform(0.1, 1))
        self._registry.agenda.after(lasts_us, partial(patiently, action))

    # the connection

    def _drop(self) -> None:
        self._faults.drop_watches()

    def _cut(self) -> None:
        self._faults.cut()

    def _trickle(self) -> None:
        self._faults.trickle(self._random.randint(1, 5))

    def _stall(self) -> None:
        self._faults.stall()
        self._later(self._faults.resume)

    # the server

    def _refuse(self) -> None:
        self._faults.refuse(self._random.randint(1, 3), self._random.choice(_REFUSALS))
        self._faults.drop_watches()
        self._later(self._faults.relent)

    def _misdate(self) -> None:
        """The next watches are answered by a server whose clock is wrong by up to a day."""
        ahead_us = self._random.randint(-DAY_US, DAY_US)
        self._faults.misdate(self._random.randint(1, 3), ahead_us=ahead_us)
        self._faults.drop_watches()

    def _expire(self) -> None:
        """Nothing gets through for a while, and what happened meanwhile is forgotten."""
        self._faults.stall()
        self._later(self._forget)

    def _forget(self) -> None:
        self._registry.store.compact()
        self._faults.drop_watches()
        self._faults.resume()

    def _list_by_pages(self) -> None:
        """The same, on a server that cannot stream the new list."""
        self._switch("streaming_lists", to=False)
        self._forget()

    def _freeze_bookmarks(self) -> None:
        self._switch("frozen_bookmarks", to=True)

    def _lose_events(self) -> None:
        self._switch("lose_events", to=True)

    def _switch(self, fault: str, *, to: bool) -> None:
        setattr(self._faults, fault, to)
        self._later(lambda: setattr(self._faults, fault, not to))

    # what is told

    def _garble(self) -> None:
        self._faults.garble()

    def _mistype(self) -> None:
        self._faults.mistype()

    def _repeat(self) -> None:
        self._faults.repeat(self._random.randint(1, 9))

    def _reorder(self) -> None:
        self._faults.reorder(self._random.randint(2, 5))

    # nodes and pods

    def _unready(self) -> str:
        name = self._some_node()
        self._nodes.mark_not_ready(name)
        self._later(partial(self._nodes.mark_ready, name))
        return name

    def _unreachable(self) -> str:
        name = self._some_node()
        self._nodes.mark_unknown(name)
        self._later(partial(self._nodes.mark_ready, name))
        return name

    def _cordon(self) -> str:
        name = self._some_node()
        self._nodes.cordon(name)
        self._later(partial(self._nodes.cordon, name, unschedulable=False))
        return name

    def _skew(self) -> str:
        """The node's clock is wrong until somebody sets it right."""
        name = self._some_node()
        self._nodes.set_clock(name, ahead_us=self._random.randint(-MAX_SKEW_S, MAX_SKEW_S) * SECOND_US)
        self._later(partial(self._nodes.set_clock, name, ahead_us=0))
        return name

    def _some_node(self) -> str:
        """Not one of our own, if there are others."""
        names = [name for (_, name), _ in self._registry.store.snapshot("nodes")]
        return self._random.choice([name for name in names if name not in (REBORN, VANISHING)] or [REBORN])

    def _reborn(self) -> str:
        """Several pods of one name, one right after another, each for a second."""
        for life in range(_LIVES):
            self._registry.agenda.after(2 * life * SECOND_US, partial(patiently, self._replace_reborn))
        return REBORN

    def _replace_reborn(self) -> None:
        if self._over:
            return
        if self._registry.store.get("pods", (NAMESPACE, REBORN)):
            self._registry.delete("pods", (NAMESPACE, REBORN), grace_seconds=0)
        self._create_pod(REBORN, lasts_us=SECOND_US)

    def _vanish(self) -> str:
        """A node goes with a pod on it, and another comes under its name: before its pods are given up, or after.

        It is the same machine, or another.
        """
        if not self._registry.store.get("nodes", ("", VANISHING)):
            return ""
        if not self._registry.store.get("pods", (NAMESPACE, VANISHING)):
            self._create_pod(VANISHING, lasts_us=None)
        agenda = self._registry.agenda
        agenda.after(10 * SECOND_US, partial(patiently, partial(self._nodes.delete, VANISHING)))
        back_us = 10 * SECOND_US + int(POD_GC_US * self._random.uniform(0.2, 2))
        machine = self._random.choice((VANISHING, "another"))
        agenda.after(back_us, partial(patiently, partial(self._add_node, VANISHING, machine)))
        return VANISHING

    def _register_anew(self) -> str:
        """A Node is deleted by mistake, and its kubelet makes another within seconds."""
        name = self._some_node()
        self._nodes.register_anew(name, after_us=self._random.randint(1, 9) * SECOND_US)
        return name

    def _create_pod(self, name: str, *, lasts_us: int | None) -> None:
        pod = workloads.bare_pod(Work(app=name, kind="chaos", lasts_us=lasts_us), name)
        pod["spec"]["nodeName"] = name
        pod["metadata"]["ownerReferences"] = [next(self._forged) | {"uid": "forged", "controller": True}]
        self._registry.create("pods", pod, NAMESPACE)

    def _add_node(self, name: str, machine: str = "") -> None:
        node = gpu_node(name, NodePool(name="chaos-pool", count=1), offered={GPU: 1}, machine=machine)
        node["spec"]["taints"] = [_TAINT]
        self._registry.create("nodes", node)
