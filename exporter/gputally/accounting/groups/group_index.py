"""The pods of each group."""

from typing import TYPE_CHECKING

from gputally.accounting.base.compact import with_uid, without_uid
from gputally.frameworks.groups import PodGroup, group_of
from gputally.model.pod_record import PodRecord

if TYPE_CHECKING:
    from collections.abc import Collection


class GroupIndex:
    """UIDs of the existing pods of each group."""

    def __init__(self) -> None:
        self._members: dict[PodGroup, Collection[str]] = {}
        self._group_of: dict[str, PodGroup] = {}

    def put(self, record: PodRecord) -> None:
        """Add a pod that is new or has other labels."""
        self.drop(record.uid)
        if group := group_of(record):
            group = next((self._group_of[uid] for uid in self._members.get(group, ())), group)  # one object for all
            self._members[group] = with_uid(self._members.get(group, ()), record.uid)
            self._group_of[record.uid] = group

    def of(self, uid: str) -> PodGroup | None:
        """The group of a pod."""
        return self._group_of.get(uid)

    def members(self, group: PodGroup | None) -> set[str]:
        """The pods of a group."""
        return {*self._members.get(group, ())} if group else set()

    def drop(self, uid: str) -> None:
        """Remove a pod."""
        if group := self._group_of.pop(uid, None):
            left = self._members[group] = without_uid(self._members[group], uid)
            if not left:
                del self._members[group]
