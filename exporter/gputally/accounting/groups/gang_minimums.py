"""What PodGroup objects declare about gangs."""

from collections.abc import Iterator

from gputally.accounting.groups.declared_groups import Declared
from gputally.accounting.groups.gang_members import GangMembers
from gputally.accounting.groups.gang_record import GangRecord


class GangMinimums:
    """`declared` by the key of the group object; and the keys of the gangs whose pods name each object."""

    def __init__(self) -> None:
        self.declared: dict[str, Declared] = {}
        self._gangs: dict[str, set[str]] = {}

    def put(self, name: str, found: Declared | None) -> bool:
        """An object is new, has changed or is gone; returns whether that is news."""
        if found == self.declared.get(name):
            return False
        if found:
            self.declared[name] = found
        else:
            del self.declared[name]
        return True

    def gangs_of(self, name: str) -> list[str]:
        """The keys of the gangs whose pods name an object."""
        return [*self._gangs.get(name, ())]

    def join(self, gang: GangMembers, name: str) -> bool:
        """A pod of the gang names an object, or none; returns whether it is the first one that does."""
        if name in gang.names:
            return False
        gang.names = (*gang.names, name)
        if name:
            self._gangs.setdefault(name, set()).add(gang.key)
        return True

    def leave(self, gang: GangMembers) -> None:
        """A gang has no pods any more."""
        for name in gang.names:
            if keys := self._gangs.get(name):
                keys.discard(gang.key)
                if not keys:
                    del self._gangs[name]

    def forgotten(self, api: str, known: GangRecord) -> Iterator[str]:
        """The objects of an API that a gang counts on although they do not exist."""
        return (name for name, _ in known.minimums if name.startswith(f"{api}/") and name not in self.declared)
