"""Simulated kubelets: pods start, run, end and stop as specified by annotations.

`pod.gputally.io/initialize-for` time from binding for which an init container runs; by default there is none
`pod.gputally.io/start-after`  time from then until containers run; Go duration, default 0s
`pod.gputally.io/run-for`      time from running until completion; by default the pod runs forever
`pod.gputally.io/exit`         `Failed` makes the pod fail on completion
`pod.gputally.io/stop-after`   time from the deletion request until containers end; default 0s, at most the grace
`pod.gputally.io/exit-on-term` exit code of running containers then; default 143, and 0 makes the pod Succeeded
"""

from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from functools import partial

from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.documents import Doc, Key, annotation, key_of, uid_of
from gputally_sim.instants import SECOND_US, parse_duration, rfc3339
from gputally_sim.node.pods import condition, is_terminal, is_terminating, node_of, with_condition

INITIALIZE_FOR = "pod.gputally.io/initialize-for"
START_AFTER = "pod.gputally.io/start-after"
RUN_FOR = "pod.gputally.io/run-for"
EXIT = "pod.gputally.io/exit"
STOP_AFTER = "pod.gputally.io/stop-after"
EXIT_ON_TERM = "pod.gputally.io/exit-on-term"

_CLEAN_UP_US = 100_000
"""Time from the end of the containers until the kubelet's final deletion of the pod."""
_BACK_OFF_US = 10 * SECOND_US
"""How long a kubelet waits before it restarts a container that has failed."""
_SIGTERM_EXIT = 143


class Stage(StrEnum):
    """The stage of a bound pod; each stage ends after a delay."""

    ACCEPTING = "accepting"
    INITIALIZING = "initializing"
    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    REMOVABLE = "removable"
    ENDED = "ended"


_Act = Callable[[], None]
Token = tuple[Stage, int]
"""A stage and its grace period; a shortened grace period restarts the stage."""


def stage_of(pod: Doc) -> Token:
    """The stage of a bound pod."""
    grace: int = pod["metadata"].get("deletionGracePeriodSeconds", 0)
    if is_terminal(pod):
        return (Stage.REMOVABLE if is_terminating(pod) else Stage.ENDED), grace
    if is_terminating(pod):
        return Stage.STOPPING, grace
    if pod["status"]["phase"] == "Running":
        return (Stage.RESTARTING if _waits_again(pod) else Stage.RUNNING), grace
    return _before_running(pod), grace


def _waits_again(pod: Doc) -> bool:
    """Whether its containers have failed and wait for their next run."""
    statuses = pod["status"].get("containerStatuses") or []
    return any("waiting" in each["state"] for each in statuses)


def _before_running(pod: Doc) -> Stage:
    """The stage of a pod whose containers do not run yet; without an init container, it begins with the start."""
    if not annotation(pod, INITIALIZE_FOR):
        return Stage.STARTING
    inits = pod["status"].get("initContainerStatuses")
    if not inits:
        return Stage.ACCEPTING
    return Stage.INITIALIZING if "running" in inits[0]["state"] else Stage.STARTING


def delay_of(token: Token, pod: Doc) -> int | None:
    """Duration of the stage in µs; None if it does not end."""
    stage, grace = token
    match stage:
        case Stage.ACCEPTING:
            return 0
        case Stage.INITIALIZING | Stage.STARTING:
            return _duration(pod, INITIALIZE_FOR if stage is Stage.INITIALIZING else START_AFTER)
        case Stage.RUNNING:
            return _duration(pod, RUN_FOR) if annotation(pod, RUN_FOR) else None
        case Stage.STOPPING:
            return min(_duration(pod, STOP_AFTER), grace * SECOND_US)
        case Stage.RESTARTING | Stage.REMOVABLE:
            return _BACK_OFF_US if stage is Stage.RESTARTING else _CLEAN_UP_US
        case Stage.ENDED:
            return None


def _duration(pod: Doc, name: str) -> int:
    """The annotation's duration; 0 if unreadable, because client errors must not stop the simulation."""
    try:
        return parse_duration(annotation(pod, name, "0s"))
    except ValueError:
        return 0


class Kubelets:
    """All kubelets of the cluster.

    Kubelets of `unreachable` nodes keep running, but receive no deletions and report nothing until `resume`.
    """

    def __init__(self, registry: Registry) -> None:
        self.unreachable: set[str] = set()
        self.skews_us: dict[str, int] = {}
        """Offset of node clocks to the API server's clock; it applies to all times that the kubelet reports."""
        self._registry = registry
        self._happened_us: int | None = None
        self._tokens: dict[str, Token] = {}
        self._parked: defaultdict[str, list[_Act]] = defaultdict(list)
        registry.store.subscribe("pods", self._observe)

    def resume(self, node: str) -> None:
        """Run the actions that became due while `node` was unreachable or did not exist."""
        self.unreachable.discard(node)
        for action in self._parked.pop(node, ()):
            action()

    def reboot(self, node: str) -> None:
        """Reboot `node` and reject all of its pods, since its device plugin comes after its kubelet.

        Source: kubernetes pkg/kubelet/cm/devicemanager/manager.go, devicesToAllocate.
        """
        for pod in [doc for doc in self._registry.store.docs("pods") if node_of(doc) == node]:
            if not is_terminal(pod):
                self._registry.patch("pods", key_of(pod), {"status": rejected(pod, self._now_us(node))}, status=True)

    def crash(self, key: Key) -> None:
        """The containers of a running pod fail; its kubelet restarts them after a while.

        Source: kubernetes pkg/kubelet/kubelet_pods.go, convertToAPIContainerStatuses.
        """
        pod = self._registry.read("pods", key).doc
        if stage_of(pod)[0] is Stage.RUNNING and node_of(pod) not in self.unreachable:
            self._registry.patch("pods", key, {"status": crashed(pod, self._now_us(node_of(pod)))}, status=True)

    def _now_us(self, node: str) -> int:
        return self.clock_us(node, self._registry.agenda.now_us)

    def clock_us(self, node: str, us: int) -> int:
        """The clock of `node` at `us`."""
        return us + self.skews_us.get(node, 0)

    def _observe(self, change: Change) -> None:
        pod = change.now.doc
        uid = uid_of(pod)
        if change.verb is Verb.DELETED:
            self._tokens.pop(uid, None)
        elif node_of(pod) and self._tokens.get(uid) != (token := stage_of(pod)):
            self._tokens[uid] = token
            delay_us = delay_of(token, pod)
            if delay_us is not None:
                since_us = self._registry.agenda.now_us if self._happened_us is None else self._happened_us
                due_us = since_us + delay_us
                self._registry.agenda.at(due_us, partial(self._act, change.key, uid, token, due_us))

    def _act(self, key: Key, uid: str, token: Token, due_us: int) -> None:
        """End the stage if the pod is still in it; if the node is unreachable, defer this until it is back."""
        stored = self._registry.store.get("pods", key)
        if stored is None or uid_of(stored.doc) != uid or stage_of(stored.doc) != token:
            return
        pod = stored.doc
        node = node_of(pod)
        if node in self.unreachable or self._registry.store.get("nodes", ("", node)) is None:
            self._parked[node].append(partial(self._act, key, uid, token, due_us))
        elif token[0] is Stage.REMOVABLE:
            self._registry.delete("pods", key, grace_seconds=0, uid=uid)
        else:
            delayed = token[0] is Stage.STOPPING  # an unreachable kubelet receives the deletion only when it is back
            self._happened_us = self._registry.agenda.now_us if delayed else due_us
            status = next_status(token[0], pod, self.clock_us(node, self._happened_us))
            self._registry.patch("pods", key, {"status": status}, status=True)
            self._happened_us = None


def next_status(stage: Stage, pod: Doc, now_us: int) -> Doc:
    """The pod status at the end of a stage."""
    match stage:
        case Stage.ACCEPTING:
            return initializing(pod, now_us)
        case Stage.INITIALIZING:
            return initialized(pod, now_us)
        case Stage.STARTING | Stage.RESTARTING:
            return started(pod, now_us)
    code = int(annotation(pod, EXIT) == "Failed") if stage is Stage.RUNNING else code_on_term(pod)
    return ended(pod, now_us, phase="Failed" if code else "Succeeded", exit_code=code)


def code_on_term(pod: Doc) -> int:
    """The exit code of the containers after SIGTERM; containers that did not run have not handled it."""
    code = annotation(pod, EXIT_ON_TERM)
    return int(code) if code.isdecimal() and pod["status"]["phase"] == "Running" else _SIGTERM_EXIT


def initializing(pod: Doc, now_us: int) -> Doc:
    """The status of a pod that its kubelet accepts, with a running init container."""
    return {
        "phase": "Pending",
        "startTime": rfc3339(now_us),
        "initContainerStatuses": [_container(_INIT) | {"state": {"running": {"startedAt": rfc3339(now_us)}}}],
        "containerStatuses": [
            {**_container(each), "ready": False, "started": False, "state": _INITIALIZING}
            for each in pod["spec"]["containers"]
        ],
    }


def initialized(pod: Doc, now_us: int) -> Doc:
    """The status of a pod whose init container has ended."""
    run = pod["status"]["initContainerStatuses"][0]["state"]["running"]
    ended = {"terminated": {**run, "exitCode": 0, "reason": "Completed", "finishedAt": rfc3339(now_us)}}
    return {"initContainerStatuses": [_container(_INIT) | {"state": ended}]}


def rejected(pod: Doc, now_us: int) -> Doc:
    """The status of a pod that its kubelet rejects, which removes its conditions and all statuses of containers."""
    return {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": "Pod was rejected: Allocate failed due to cannot allocate unregistered device, which is unexpected",
        "startTime": pod["status"].get("startTime") or rfc3339(now_us),
        "conditions": [],
        "initContainerStatuses": None,
        "containerStatuses": None,
    }


def started(pod: Doc, now_us: int) -> Doc:
    """The pod status with all containers running."""
    now = rfc3339(now_us)
    conditions = pod
    for kind in ("PodScheduled", "Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready"):
        if (condition(conditions, kind) or {}).get("status") != "True":
            conditions = {"status": {"conditions": with_condition(conditions, now_us, kind, "True")}}
    return {
        "phase": "Running",
        "startTime": pod["status"].get("startTime") or now,
        "conditions": conditions["status"]["conditions"],
        "containerStatuses": [
            {**_container(each), "ready": True, "started": True, "state": {"running": {"startedAt": now}}}
            | _runs_before(pod, i, starts=True)
            for i, each in enumerate(pod["spec"]["containers"])
        ],
    }


def crashed(pod: Doc, now_us: int) -> Doc:
    """The status of a pod whose containers have failed, and wait for their next run."""
    conditions = pod
    for kind in ("ContainersReady", "Ready"):
        fresh = with_condition(conditions, now_us, kind, "False", reason="ContainersNotReady")
        conditions = {"status": {"conditions": fresh}}
    return {
        "conditions": conditions["status"]["conditions"],
        "containerStatuses": [
            {**_container(each), "ready": False, "started": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
            | _runs_before(pod, i)
            | {"lastState": {"terminated": _terminated(pod, i, now_us, 1)}}
            for i, each in enumerate(pod["spec"]["containers"])
        ],
    }


def _runs_before(pod: Doc, index: int, *, starts: bool = False) -> Doc:
    """How often the container was restarted, and its last run; one that `starts` again counts."""
    statuses = pod["status"].get("containerStatuses") or []
    known = statuses[index] if index < len(statuses) else {}
    if not known.get("lastState"):
        return {"restartCount": known.get("restartCount", 0)}
    return {"restartCount": known["restartCount"] + starts, "lastState": known["lastState"]}


def ended(pod: Doc, now_us: int, *, phase: str, exit_code: int) -> Doc:
    """The pod status with all containers terminated now; their start times are kept."""
    conditions = pod
    for kind in ("ContainersReady", "Ready"):
        fresh = with_condition(conditions, now_us, kind, "False", reason=f"Pod{_ENDINGS[phase]}")
        conditions = {"status": {"conditions": fresh}}
    return {
        "phase": phase,
        "startTime": pod["status"].get("startTime") or rfc3339(now_us),
        "conditions": conditions["status"]["conditions"],
        "containerStatuses": [
            {
                **_container(each),
                "ready": False,
                "started": False,
                "state": {"terminated": _terminated(pod, i, now_us, exit_code)},
            }
            | _runs_before(pod, i)
            for i, each in enumerate(pod["spec"]["containers"])
        ],
    }


def _terminated(pod: Doc, index: int, now_us: int, exit_code: int) -> Doc:
    statuses = pod["status"].get("containerStatuses") or []
    if index < len(statuses) and "waiting" in statuses[index]["state"] and statuses[index]["lastState"]:
        last: Doc = statuses[index]["lastState"]["terminated"]
        return last  # a kubelet that stops a pod between two runs reports the last one
    running = statuses[index]["state"].get("running", {}) if index < len(statuses) else {}
    began = {"startedAt": running["startedAt"]} if "startedAt" in running else {}
    reason = "Completed" if exit_code == 0 else "Error"
    return {"exitCode": exit_code, "reason": reason, **began, "finishedAt": rfc3339(now_us)}


def _container(container: Doc) -> Doc:
    image = container.get("image", "")
    return {"name": container["name"], "image": image, "imageID": image, "restartCount": 0, "lastState": {}}


_INIT = {"name": "init"}
_INITIALIZING = {"waiting": {"reason": "PodInitializing"}}
_ENDINGS = {"Succeeded": "Completed", "Failed": "Failed"}
