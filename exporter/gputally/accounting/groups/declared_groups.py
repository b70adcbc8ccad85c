"""PodGroup objects: how many pods of a group its scheduler binds at once, as they come and go."""

from collections.abc import Callable, Collection

from msgspec import Struct

from gputally.accounting.base.limits import LimitOverflow, NamespaceLimit
from gputally.accounting.base.state_part import StatePart
from gputally.frameworks.all import POD_GROUPS_BY_KIND
from gputally.frameworks.groups import declared_by, group_key
from gputally.frameworks.pod_group_kind import Declared
from gputally.model.kube.kinds import Kind
from gputally.model.kube.meta import Object


class DeclaredGroups(StatePart[Struct]):
    """The PodGroups of one API. They are listed again at each start.

    `declares` receives each change of what a group says, None if it says nothing any more, and `listed_all` that all
    groups of the API are known.
    """

    name = "declared_group"

    def __init__(
        self, kind: Kind, declares: Callable[[str, Declared | None, int], None], listed_all: Callable[[str, int], None]
    ) -> None:
        self.kinds = (kind,)
        self._api = POD_GROUPS_BY_KIND[kind].api
        self._declares = declares
        self._listed_all = listed_all
        self._key_of: dict[str, str] = {}
        """By UID, of groups that say something."""
        self._uid_of: dict[str, str] = {}
        self._limit = NamespaceLimit(kind.limit, lambda _, uid: self.gone(uid, at_us=self._now_us))
        self._now_us = 0

    @property
    def limit_overflow(self) -> LimitOverflow:
        """See `StatePart.limit_overflow`."""
        return self._limit.overflow

    def seen(self, found: Object, *, at_us: int) -> None:
        """See `StatePart.seen`."""
        declared, meta = declared_by(found, at_us=at_us), found.metadata
        self._now_us = at_us
        if declared is None:
            self.gone(meta.uid, at_us=at_us)
            return
        if not self._limit.put(meta.namespace, meta.uid):
            return
        key = group_key(meta.namespace, f"{self._api}/{meta.name}", "")
        self._key_of[meta.uid], self._uid_of[key] = key, meta.uid
        self._declares(key, declared, at_us)

    def gone(self, uid: str, *, at_us: int) -> None:
        """See `StatePart.gone`; a group of the same name may have replaced it."""
        key = self._key_of.pop(uid, "")
        if not key:
            return
        self._limit.remove(key.split("/")[1], uid)
        if self._uid_of.get(key) == uid:
            del self._uid_of[key]
            self._declares(key, None, at_us)

    def listed(self, uids: Collection[str], *, at_us: int) -> None:
        """See `StatePart.listed`."""
        for uid in self._key_of.keys() - {*uids}:
            self.gone(uid, at_us=at_us)
        self._listed_all(self._api, at_us)
