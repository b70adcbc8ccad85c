"""Nodes that may yet get GPUs, whose pods are kept until then."""

from typing import Final

from gputally.model.units import US_PER_SECOND

YOUNG_US: Final = 900 * US_PER_SECOND
"""How long a node without GPUs may still turn out to have some."""
MOST_NODES: Final = 5000
"""The most nodes whose pods are kept; the pods of further ones are listed."""
MOST_UNKNOWN: Final = 500
"""The most names of nodes that only pods mention: anyone who may create pods can make them up."""


class YoungNodes:
    """The names of nodes without GPUs, and of nodes that nobody has reported yet.

    It knows of which of them earlier pods may be missing, since there were too many.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        """When they are young no longer."""
        self._unknown: dict[str, int] = {}
        """Until when a node of that name is expected."""
        self._partial: set[str] = set()
        """Names that may have been refused before they were kept, so that earlier pods may be missing."""
        self._refused_us: int | None = None
        """When a name was refused, or its pods forgotten, for the last time."""

    def __contains__(self, name: str) -> bool:
        return name in self._nodes or name in self._unknown

    def node_seen(self, name: str, *, until_us: int, at_us: int) -> None:
        """A node without GPUs exists, which is young until then."""
        if until_us > at_us and name not in self:
            self._keep(self._nodes, MOST_NODES, name, until_us=until_us, at_us=at_us)

    def pod_seen(self, name: str, *, at_us: int) -> bool:
        """A pod is bound to a node that nobody has reported; returns whether its pods are kept."""
        return name in self or self._keep(self._unknown, MOST_UNKNOWN, name, until_us=at_us + YOUNG_US, at_us=at_us)

    def has_all(self, name: str, *, until_us: int, at_us: int) -> bool:
        """Whether all pods of a node that has GPUs now were kept; `until_us` is when it is young no longer."""
        if name in self:
            return name not in self._partial
        return until_us > at_us and not self._has_refused(at_us)

    def forget(self, name: str) -> None:
        """The node has GPUs."""
        self._nodes.pop(name, None)
        self._unknown.pop(name, None)
        self._partial.discard(name)

    def end(self, now_us: int) -> list[str]:
        """Forget and return those that are young no longer."""
        ended = [
            name for names in (self._nodes, self._unknown) for name, until_us in names.items() if until_us <= now_us
        ]
        for name in ended:
            self.forget(name)
        return ended

    def refuse(self, at_us: int) -> None:
        """Pods of a node that may yet be reported are not kept."""
        self._refused_us = at_us

    def _keep(self, names: dict[str, int], most: int, name: str, *, until_us: int, at_us: int) -> bool:
        if len(names) >= most:
            self.refuse(at_us)
            return False
        if self._has_refused(at_us):
            self._partial.add(name)
        names[name] = until_us
        return True

    def _has_refused(self, at_us: int) -> bool:
        """Whether that may have been a node that is young still."""
        return self._refused_us is not None and at_us < self._refused_us + YOUNG_US
