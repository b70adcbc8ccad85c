"""Injects random faults into any scenario, at random simulated times.

It deletes only its own pods. Wrong clocks and unreachable nodes change what kubelets report, and when.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from itertools import cycle

from gputally_sim.api.faults import Faults
from gputally_sim.api.refusals import log_rejections, run_logged
from gputally_sim.api.registry import Registry
from gputally_sim.documents import Doc, labels_of
from gputally_sim.instants import DAY_US, SECOND_US
from gputally_sim.naming import choices
from gputally_sim.node.nodes import POD_GC_US, Nodes
from gputally_sim.node.pods import GPU, is_running
from gputally_sim.scenarios import workloads
from gputally_sim.scenarios.fleet import GPU_COUNT, NodePool, gpu_node
from gputally_sim.scenarios.workloads import Work

NAMESPACE = "chaos"
REBORN = "reborn"
"""The name of successive one-second pods, and of their node."""
VANISHING = "vanishing"
"""The name of successive nodes, and of a pod on the node when it is deleted."""
REBOOTING = "rebooting"
"""The name of a node that reboots, and of successive pods that initialize on it."""
_OWN_NODES = (REBORN, VANISHING, REBOOTING)

_TAINT = {"key": "gputally.io/chaos", "value": "true", "effect": "NoSchedule"}
MAX_SKEW_S = 30
"""Maximum clock skew."""
FORGED: tuple[Doc, ...] = (
    {"apiVersion": "v1", "kind": "../../pods#", "name": "all"},
    {"apiVersion": "v1", "kind": "Pod", "name": "?watch=true#"},
    {"apiVersion": "v1", "kind": "Node", "name": ".."},
    {"apiVersion": "invented.example/v1", "kind": "Invented", "name": "unknown"},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone"},
)
"""Forged owners of the pods; a real server accepts any nonempty values."""

CLAIMS: Doc = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
"""What Dynamic Resource Allocation gives a pod besides its GPUs; no claim exists."""
CHIP = "nvidia.com/GA102GL_A10"
"""A device that the nodes of chaos do not offer; kubelets ignore that."""
ASKS: tuple[tuple[Doc, Doc], ...] = (({}, {}), (CLAIMS, {}), ({}, {CHIP: "1"}))
"""What pods ask for besides their GPUs, in their spec and as limits."""

_LIVES = 3
_REFUSALS = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True)
class ChaosAction:
    """An injected fault, with its time and target, if any."""

    at_us: int
    fault: str
    target: str = ""


class Chaos:
    """Injects a fault about every `every_us` of simulated time; lasting faults end within the same time."""

    def __init__(self, registry: Registry, faults: Faults, nodes: Nodes, *, seed: int, every_us: int) -> None:
        self.actions: list[ChaosAction] = []
        """All faults injected so far."""
        self._registry = registry
        self._faults = faults
        self._nodes = nodes
        self._every_us = every_us
        self._over = False
        self._random = choices(seed, "chaos")
        self._forged = cycle(FORGED)
        self._asks = cycle(ASKS)
        self._injectors: dict[str, Callable[[], str | None]] = {
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
            "reregister": self._reregister,
            "fail gpus": self._fail_gpus,
            "reboot": self._reboot,
            "crash": self._crash,
        }

    @property
    def fault_names(self) -> tuple[str, ...]:
        """The names of all faults."""
        return tuple(self._injectors)

    def limit_to(self, faults: Collection[str]) -> None:
        """Inject only these; none of them named, all."""
        if faults:
            self._injectors = {name: self._injectors[name] for name in faults}

    def begin(self) -> None:
        """Create its own objects, and schedule the first fault."""
        self._registry.create("namespaces", workloads.namespace(NAMESPACE))
        for name in _OWN_NODES:
            self._add_node(name)
        self._schedule_next()

    def end(self) -> None:
        """Stop, and delete its own pods; lasting faults end soon."""
        self._over = True
        for name in _OWN_NODES:
            if self._registry.store.get("pods", (NAMESPACE, name)):
                self._registry.delete("pods", (NAMESPACE, name), grace_seconds=0)

    def do(self, fault: str) -> None:
        """Inject one of `fault_names` now."""
        with log_rejections():
            target = self._injectors[fault]()
            self.actions.append(ChaosAction(self._registry.agenda.now_us, fault, target or ""))

    def _schedule_next(self) -> None:
        pause_us = int(self._random.expovariate(1 / self._every_us))
        self._registry.agenda.after(pause_us, self._inject_random)

    def _inject_random(self) -> None:
        if not self._over:
            self.do(self._random.choice(self.fault_names))
            self._schedule_next()

    def _later(self, action: Callable[[], object]) -> None:
        """Schedule the end of a lasting fault."""
        lasts_us = int(self._every_us * self._random.uniform(0.1, 1))
        self._registry.agenda.after(lasts_us, partial(run_logged, action))

    # connection faults

    def _drop(self) -> None:
        self._faults.drop_watches()

    def _cut(self) -> None:
        self._faults.cut()

    def _trickle(self) -> None:
        self._faults.trickle(self._random.randint(1, 5))

    def _stall(self) -> None:
        self._faults.stall()
        self._later(self._faults.resume)

    # server faults

    def _refuse(self) -> None:
        self._faults.refuse(self._random.randint(1, 3), self._random.choice(_REFUSALS))
        self._faults.drop_watches()
        self._later(self._faults.stop_refusing)

    def _misdate(self) -> None:
        """Answer the next watches with a Date that is wrong by up to a day."""
        ahead_us = self._random.randint(-DAY_US, DAY_US)
        self._faults.misdate(self._random.randint(1, 3), ahead_us=ahead_us)
        self._faults.drop_watches()

    def _expire(self) -> None:
        """Stall watches for a while, then discard the history."""
        self._faults.stall()
        self._later(self._forget)

    def _forget(self) -> None:
        self._registry.store.compact()
        self._faults.drop_watches()
        self._faults.resume()

    def _list_by_pages(self) -> None:
        """Discard the history on a server without streaming lists."""
        self._switch("streaming_lists", to=False)
        self._forget()

    def _freeze_bookmarks(self) -> None:
        self._switch("frozen_bookmarks", to=True)

    def _lose_events(self) -> None:
        self._switch("lose_events", to=True)

    def _switch(self, fault: str, *, to: bool) -> None:
        setattr(self._faults, fault, to)
        self._later(lambda: setattr(self._faults, fault, not to))

    # event faults

    def _garble(self) -> None:
        self._faults.garble()

    def _mistype(self) -> None:
        self._faults.mistype()

    def _repeat(self) -> None:
        self._faults.repeat(self._random.randint(1, 9))

    def _reorder(self) -> None:
        self._faults.reorder(self._random.randint(2, 5))

    # node and pod faults

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
        """Skew a node's clock for a while."""
        name = self._some_node()
        self._nodes.set_clock(name, ahead_us=self._random.randint(-MAX_SKEW_S, MAX_SKEW_S) * SECOND_US)
        self._later(partial(self._nodes.set_clock, name, ahead_us=0))
        return name

    def _some_node(self) -> str:
        """A random node, preferably not one of this module."""
        names = [name for (_, name), _ in self._registry.store.snapshot("nodes")]
        return self._random.choice([name for name in names if name not in _OWN_NODES] or [REBORN])

    def _reborn(self) -> str:
        """Run several one-second pods of the same name in succession."""
        for life in range(_LIVES):
            self._registry.agenda.after(2 * life * SECOND_US, partial(run_logged, self._replace_reborn))
        return REBORN

    def _replace_reborn(self) -> None:
        if self._over:
            return
        if self._registry.store.get("pods", (NAMESPACE, REBORN)):
            self._registry.delete("pods", (NAMESPACE, REBORN), grace_seconds=0)
        self._create_pod(REBORN, lasts_us=SECOND_US)

    def _vanish(self) -> str:
        """Delete a node with a pod on it, and create another of the same name, before or after PodGC deletes the pod.

        The new node is the same machine or another one.
        """
        if not self._registry.store.get("nodes", ("", VANISHING)):
            return ""
        if not self._registry.store.get("pods", (NAMESPACE, VANISHING)):
            self._create_pod(VANISHING, lasts_us=None)
        agenda = self._registry.agenda
        agenda.after(10 * SECOND_US, partial(run_logged, partial(self._nodes.delete, VANISHING)))
        back_us = 10 * SECOND_US + int(POD_GC_US * self._random.uniform(0.2, 2))
        machine = self._random.choice((VANISHING, "another"))
        agenda.after(back_us, partial(run_logged, partial(self._add_node, VANISHING, machine)))
        return VANISHING

    def _reregister(self) -> str:
        """Delete a Node; its kubelet registers it again within seconds."""
        name = self._some_node()
        self._nodes.reregister(name, after_us=self._random.randint(1, 9) * SECOND_US)
        return name

    def _fail_gpus(self) -> str:
        """Half of a node's GPUs fail for a while: discovery counts the others, and the kubelet offers them all."""
        name = self._some_node()
        count = int(labels_of(self._registry.read("nodes", ("", name)).doc).get(GPU_COUNT, "0"))
        if count > 1:
            self._count_gpus(name, count // 2)
            self._later(partial(self._count_gpus, name, count))
        return name

    def _count_gpus(self, name: str, count: int) -> None:
        self._registry.patch("nodes", ("", name), {"metadata": {"labels": {GPU_COUNT: str(count)}}})

    def _reboot(self) -> str:
        """Reboot a node within minutes, while a pod on it initializes; its kubelet rejects the pod afterwards."""
        if self._registry.store.get("pods", (NAMESPACE, REBOOTING)):
            self._registry.delete("pods", (NAMESPACE, REBOOTING), grace_seconds=0)
        self._create_pod(REBOOTING, lasts_us=None, initializes_us=DAY_US)
        after_us = self._random.randint(1, 300) * SECOND_US
        self._registry.agenda.after(after_us, partial(run_logged, partial(self._nodes.reboot, REBOOTING)))
        return REBOOTING

    def _crash(self) -> str:
        """The containers of somebody's pod fail, and are restarted, unless its restart policy is Never."""
        pods = ((key, stored.doc) for key, stored in self._registry.store.snapshot("pods") if key[0] != NAMESPACE)
        running = [key for key, pod in pods if is_running(pod) and pod["spec"].get("restartPolicy") != "Never"]
        if not running:
            return ""
        key = self._random.choice(running)
        self._nodes.crash(key)
        return "/".join(key)

    def _create_pod(self, name: str, *, lasts_us: int | None, initializes_us: int = 0) -> None:
        work = Work(app=name, kind="chaos", lasts_us=lasts_us, initializes_us=initializes_us)
        pod = workloads.bare_pod(work, name)
        spec, limits = next(self._asks)
        pod["spec"] |= {"nodeName": name} | spec
        pod["spec"]["containers"][0]["resources"]["limits"] |= limits
        pod["metadata"]["ownerReferences"] = [next(self._forged) | {"uid": "forged", "controller": True}]
        self._registry.create("pods", pod, NAMESPACE)

    def _add_node(self, name: str, machine: str = "") -> None:
        node = gpu_node(name, NodePool(name="chaos-pool", count=1), offered={GPU: 1}, machine=machine)
        node["spec"]["taints"] = [_TAINT]
        self._registry.create("nodes", node)
