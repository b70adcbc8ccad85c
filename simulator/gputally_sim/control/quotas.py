"""The quota controller: what is used of each ResourceQuota."""

from gputally_sim.agenda import Worklist
from gputally_sim.api.quotas import applies, hard_limits, used
from gputally_sim.api.registry import Registry
from gputally_sim.api.store import Change, Verb
from gputally_sim.documents import Key, key_of


class Quotas:
    """Updates `status.used`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._quotas: Worklist[Key] = Worklist(registry.agenda, self._sync)
        registry.store.subscribe("resourcequotas", self._observe_quota)
        registry.store.subscribe("pods", self._observe_pod)

    def _observe_quota(self, change: Change) -> None:
        if change.verb is not Verb.DELETED:
            self._quotas.add(change.key)

    def _observe_pod(self, change: Change) -> None:
        for quota in self._registry.store.docs("resourcequotas"):
            if quota["metadata"]["namespace"] == change.key[0] and applies(quota, change.now.doc):
                self._quotas.add(key_of(quota))

    def _sync(self, key: Key) -> None:
        stored = self._registry.store.get("resourcequotas", key)
        if stored is None:
            return
        pods = [pod for pod in self._registry.store.docs("pods") if pod["metadata"]["namespace"] == key[0]]
        hard, amounts = hard_limits(stored.doc), used(stored.doc, pods)
        status = {"hard": hard, "used": {each: str(amounts[each]) for each in hard}}
        self._registry.patch("resourcequotas", key, {"status": status}, status=True)
