"""Provisionally classified pods: they are reclassified once their namespace is observed."""

from gputally.model.pod_record import PodRecord


class Provisional:
    """Pods by UID: restored from a process with possibly other rules, or guessed while the namespace is unknown."""

    def __init__(self) -> None:
        self._guessed: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._guessed)

    def take_up(self, uid: str) -> None:
        """An earlier process classified the pod; a new classification applies from now on."""
        self._guessed[uid] = False

    def guess(self, uid: str) -> None:
        """The classification is a guess; the one from the namespace will apply from the start."""
        self._guessed[uid] = True

    def end(self, uid: str) -> bool:
        """The pod is finally classified, or deleted. Returns whether its classification was a guess."""
        return self._guessed.pop(uid, False)

    def suits(self, record: PodRecord, tenant: str) -> bool:
        """Whether the pod's classification is final and holds for `tenant`; other inputs change by pod events only."""
        if record.uid in self._guessed:
            return False
        return record.scheduled_us is None or (bool(record.terms) and record.terms[-1].tenant == tenant)
