"""When each controller got its latest pod, as far as that is recent: a pod that exists is refused no longer."""

from gputally.accounting.uncreated.lacking import Key
from gputally.model.pod_record import PodRecord


class RecentPods:
    """The latest creation (µs) of a pod with GPUs by the namespace and UID of its controller.

    Older ones than a refusal that still counts are forgotten. Creation times are those of the API server.
    """

    def __init__(self) -> None:
        self._since_us = 0
        self._created: dict[Key, int] = {}

    def key_of(self, record: PodRecord) -> Key | None:
        """The controller of a pod that is later than all of its pods that are known."""
        if record.created_us <= self._since_us or record.owner is None:
            return None
        key = record.namespace, record.owner.uid
        return key if record.created_us > self._created.get(key, 0) else None

    def put(self, key: Key, created_us: int) -> None:
        """Its latest pod."""
        self._created.pop(key, None)  # the latest come last
        self._created[key] = created_us

    def created_us(self, key: Key) -> int:
        """When its latest pod was created; 0 if that is long ago."""
        return self._created.get(key, 0)

    def forget(self, until_us: int) -> None:
        """Forget the pods that were created until then."""
        self._since_us = max(self._since_us, until_us)
        while self._created:
            key = next(iter(self._created))
            if self._created[key] > until_us:
                return
            del self._created[key]
