"""The Jobs of gangs, and the pods that wait for their Job to be known."""

from collections.abc import Collection

from gputally.accounting.base.few_uids import with_uid, without_uid


class GangJobs:
    """UIDs of Jobs by the key of their gang. `awaiting_uids` are pods whose Job is not known yet."""

    def __init__(self) -> None:
        self.awaiting_uids: set[str] = set()
        self._awaiting: dict[str, Collection[str]] = {}
        """The same pods by the key of the gang that their Job may be."""
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
        self.awaiting_uids.add(uid)
        self._awaiting[key] = with_uid(self._awaiting.get(key, ()), uid)

    def decided(self, key: str) -> Collection[str]:
        """The Job is known now; returns the pods that were awaiting it."""
        uids = self._awaiting.pop(key, ())
        self.awaiting_uids.difference_update(uids)
        return uids

    def awaits_no_longer(self, key: str, uid: str) -> None:
        """A pod is deleted."""
        self.awaiting_uids.discard(uid)
        if left := without_uid(self._awaiting.get(key, ()), uid):
            self._awaiting[key] = left
        else:
            self._awaiting.pop(key, None)
