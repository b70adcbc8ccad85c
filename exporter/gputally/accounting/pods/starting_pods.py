"""Pods that hold GPUs, but of which no container has run yet."""

from collections.abc import Mapping

from gputally.model.pod_record import PodRecord

Labels = tuple[str, str]
"""The exported tier and tenant."""


class StartingPods:
    """When each starting pod was bound, kept up to date pod by pod: a large job may start thousands at once."""

    def __init__(self) -> None:
        self._labels: dict[str, Labels] = {}
        self._bound_us: dict[Labels, dict[str, int]] = {}
        self._oldest_us: dict[Labels, int] = {}

    def put(self, record: PodRecord) -> None:
        """Add a pod that is starting, update it, or remove it once it has started, ends or is deleted."""
        if record.uid in self._labels:
            self.drop(record.uid)
        is_over = record.started_us is not None or record.deletion_us is not None or record.end_by is not None
        if record.scheduled_us is None or is_over or not record.segments or record.segments[-1].end_us is not None:
            return
        labels = self._labels[record.uid] = record.segments[-1].labels[:2]
        self._bound_us.setdefault(labels, {})[record.uid] = record.scheduled_us
        self._oldest_us.pop(labels, None)

    def drop(self, uid: str) -> None:
        """Remove a pod, if it is starting."""
        if labels := self._labels.pop(uid, None):
            pods = self._bound_us[labels]
            del pods[uid]
            self._oldest_us.pop(labels, None)
            if not pods:
                del self._bound_us[labels]

    def oldest(self) -> Mapping[Labels, int]:
        """When the pod that has been starting for the longest time was bound (µs), by exported tier and tenant."""
        for labels in self._bound_us.keys() - self._oldest_us.keys():
            self._oldest_us[labels] = min(self._bound_us[labels].values())
        return dict(self._oldest_us)
