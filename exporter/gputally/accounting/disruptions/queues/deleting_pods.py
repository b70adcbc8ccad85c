"""Pods whose deletion was requested, and of which nothing says why: a queue may say so before they have ended."""

from collections.abc import Collection, Iterator, Mapping

from gputally.model.pod_record import PodRecord


class DeletingPods:
    """Their UIDs by namespace, among the existing pods `records`."""

    def __init__(self, records: Mapping[str, PodRecord]) -> None:
        self._records = records
        self._uids: dict[str, set[str]] | None = None
        """None before the first look: pods of an earlier process may be among them."""

    def note(self, record: PodRecord, *, is_over: bool) -> None:
        """The deletion of a pod was requested; it `is_over` if the pod has ended, or is gone, or its cause is known."""
        namespaces = self._all()
        if not (is_over or record.end_us is not None):
            namespaces.setdefault(record.namespace, set()).add(record.uid)
        elif (uids := namespaces.get(record.namespace)) and record.uid in uids:
            uids.remove(record.uid)
            if not uids:
                del namespaces[record.namespace]

    def of(self, namespaces: Collection[str]) -> Iterator[PodRecord]:
        """Those of these namespaces, each as it is when it is reached."""
        for namespace in namespaces:
            for uid in sorted(self._all().get(namespace, ())):
                if record := self._records.get(uid):
                    yield record

    def _all(self) -> dict[str, set[str]]:
        if self._uids is None:
            self._uids = {}
            for record in self._records.values():
                if record.deletion_us is not None and record.end_us is None:
                    self._uids.setdefault(record.namespace, set()).add(record.uid)
        return self._uids
