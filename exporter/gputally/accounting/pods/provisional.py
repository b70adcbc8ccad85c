"""Pods that are classified, but not for good: once their namespace is told they are classified again."""

from gputally.model.pod import PodRecord


class Provisional:
    """By UID: taken up from a process that may have had other rules, or guessed while the namespace was not known."""

    def __init__(self) -> None:
        self._guessed: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._guessed)

    def take_up(self, uid: str) -> None:
        """What an earlier process made of the pod held until now."""
        self._guessed[uid] = False

    def guess(self, uid: str) -> None:
        """What the namespace will tell of the pod was so all along."""
        self._guessed[uid] = True

    def end(self, uid: str) -> bool:
        """The pod is classified for good, or gone; returns whether what it was before was a guess."""
        return self._guessed.pop(uid, False)

    def suits(self, record: PodRecord, tenant: str) -> bool:
        """Whether a pod is classified as it would be for `tenant` now: all else is the same until news comes of it."""
        if record.uid in self._guessed:
            return False
        return record.scheduled_us is None or (bool(record.terms) and record.terms[-1].tenant == tenant)
