"""Keys of many namespaces within a limit: whoever may create objects has a share of it.

Each kind (`model/kube/kinds.py`) and each part with documents states its limit; docs/limits.md is the table of all.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from gputally.model.kube.kinds import Limit

SELECTOR_CHARACTERS: Final = 4_096
"""Most characters of the keys and values of a label selector, or of the scopes of a quota; longer ones are not kept."""


class LimitOverflow(Struct, frozen=True):
    """How often something was not kept because of a limit, and the last namespace of which it was not."""

    count: int = 0
    namespace: str = ""

    def plus_one(self, namespace: str) -> "LimitOverflow":
        """One more, of this namespace."""
        return LimitOverflow(self.count + 1, namespace)


class NamespaceLimit:
    """Which keys are kept within a limit; `overflow` counts, each time, those that are not.

    A namespace cannot displace keys of one with fewer: at its own limit, its new ones are not kept. At the limit of
    all, the namespace with most keys loses its latest, and `drop` is called for it, unless the new one would have as
    many.
    """

    def __init__(self, limit: Limit, drop: Callable[[str, str], None]) -> None:
        self.overflow = LimitOverflow()
        self._limit = limit
        self._drop = drop
        self._kept: dict[str, dict[str, None]] = {}
        self._count = 0

    def put(self, namespace: str, key: str) -> bool:
        """Whether the key is kept, now or already."""
        own = self._kept.get(namespace, {})
        if key in own:
            return True
        if self._limit.in_namespace is not None and len(own) >= self._limit.in_namespace:
            self.refuse(namespace)
            return False
        if self._limit.in_all is not None and self._count >= self._limit.in_all:
            fullest = max(self._kept, key=lambda each: len(self._kept[each]))
            if len(own) + 1 >= len(self._kept[fullest]):
                self.refuse(namespace)
                return False
            self.refuse(fullest)
            last = next(reversed(self._kept[fullest]))
            self.remove(fullest, last)
            self._drop(fullest, last)
        self._kept.setdefault(namespace, {})[key] = None
        self._count += 1
        return True

    def refuse(self, namespace: str) -> None:
        """Count an object of the namespace that is not kept."""
        self.overflow = self.overflow.plus_one(namespace)

    def remove(self, namespace: str, key: str) -> None:
        """The key is not kept any more, if it was."""
        own = self._kept.get(namespace, {})
        if key in own:
            del own[key]
            self._count -= 1
            if not own:
                del self._kept[namespace]
