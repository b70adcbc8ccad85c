"""What PodGroup objects declare about gangs."""

from collections.abc import Iterable

from gputally.accounting.frameworks.declared_groups import Declared
from gputally.accounting.groups.gang_members import GangMembers
from gputally.accounting.groups.gang_record import GangRecord


class GangMinimums:
    """`declared` by the key of the group object; and the keys of the gangs whose pods name each object."""

    def __init__(self) -> None:
        self.declared: dict[str, Declared] = {}
        self._gangs: dict[str, set[str]] = {}

    def put(self, name: str, found: Declared | None) -> bool:
        """An object is new, has changed or is gone; returns whether that is news. Most updates are of its status."""
        if found is None:
            self.declared.pop(name, None)
            return True
        is_news = found != self.declared.get(name)
        self.declared[name] = found
        return is_news

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

    def forgotten(self, api: str, gangs: Iterable[GangRecord]) -> set[str]:
        """The objects of an API that gangs count on although they do not exist."""
        names = {name for known in gangs for name, _ in known.minimums if name.startswith(f"{api}/")}
        return names - self.declared.keys()
