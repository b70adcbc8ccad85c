"""Agent pods: which exist, and their addresses."""

from collections.abc import Collection, Iterable

from gputally.accounting.base.state_part import StatePart
from gputally.accounting.facts.lifetime import created_us
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object
from gputally.model.kube.pods import Pod
from gputally.model.rules import Rules
from gputally.model.usage import AgentPod


def is_agent(pod: Pod, rules: Rules) -> bool:
    """Whether `pod` has all labels of an agent; for nearly every pod, the first label decides."""
    marks, labels = rules.agents, pod.metadata.labels
    if not labels or (marks.namespace and pod.metadata.namespace != marks.namespace):
        return False
    for key, value in marks.labels:
        if labels.get(key) != value:
            return False
    return bool(marks.labels)


class Agents(StatePart[AgentPod]):
    """Running agents by pod UID."""

    name = "agent"
    kinds = (Kind.PODS,)

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._pods: dict[str, AgentPod] = {}
        self.known_pods = self._pods
        self._changed: set[str] = set()
        self._nodes: set[str] | None = None

    def is_on(self, node: str) -> bool:
        """Whether the node has a running agent."""
        if self._nodes is None:
            self._nodes = {pod.node for pod in self._pods.values()}
        return node in self._nodes

    def on_nodes(self) -> dict[str, AgentPod]:
        """The agent of each node; during a rollout, the new one."""
        return {pod.node: pod for pod in sorted(self._pods.values(), key=lambda pod: pod.created_us)}

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`; most pods are not agents."""
        if not isinstance(found, Pod) or not is_agent(found, self._rules):
            return
        meta, status, node = found.metadata, found.status, found.spec.node_name
        if meta.deletion_timestamp or status.phase != "Running" or not (status.pod_ip and node):
            self.gone(meta.uid, at_us=at_us)
            return
        agent = AgentPod(uid=meta.uid, node=node, address=status.pod_ip, created_us=created_us(found, at_us))
        if self._pods.get(meta.uid) != agent:
            self._pods[meta.uid] = agent
            self._note(meta.uid)

    def gone(self, uid: str, *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.gone`: the pod was deleted or has ended."""
        if self._pods.pop(uid, None):
            self._note(uid)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._pods.keys() - uids:
            self.gone(uid, at_us=at_us)

    def restore(self, documents: Iterable[AgentPod], *, at_us: int) -> None:  # noqa: ARG002 - see `StatePart`
        """See `StatePart.restore`."""
        self._pods.update((pod.uid, pod) for pod in documents)
        self._nodes = None

    def drain(self) -> dict[str, AgentPod | None]:
        """See `StatePart.drain`."""
        changed = {uid: self._pods.get(uid) for uid in self._changed}
        self._changed.clear()
        return changed

    def _note(self, uid: str) -> None:
        self._changed.add(uid)
        self._nodes = None
