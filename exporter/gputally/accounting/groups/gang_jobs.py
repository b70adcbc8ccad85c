"""The Jobs of gangs, and the pods that wait for their Job to be known."""


class GangJobs:
    """UIDs of Jobs by the key of their gang. `awaiting` are UIDs of pods by the key that their Job would have."""

    def __init__(self) -> None:
        self.awaiting: dict[str, set[str]] = {}
        self._uids: dict[str, set[str]] = {}
        self._key_of: dict[str, str] = {}

    def add(self, uid: str, key: str) -> None:
        """A Job exists."""
        self._key_of[uid] = key
        self._uids.setdefault(key, set()).add(uid)

    def drop(self, uid: str) -> str | None:
        """A Job is deleted; returns the key of its gang."""
        key = self._key_of.pop(uid, None)
        if key is not None:
            self._uids[key].discard(uid)
            if not self._uids[key]:
                del self._uids[key]
        return key

    def known(self) -> set[str]:
        """UIDs of all Jobs."""
        return set(self._key_of)

    def has(self, key: str) -> bool:
        """Whether the gang has a Job."""
        return key in self._uids

    def await_job(self, key: str, uid: str) -> None:
        """Whether a pod is in a gang depends on its Job."""
        self.awaiting.setdefault(key, set()).add(uid)

    def awaits_no_longer(self, key: str, uid: str) -> None:
        """A pod is deleted."""
        if uids := self.awaiting.get(key):
            uids.discard(uid)
            if not uids:
                del self.awaiting[key]
