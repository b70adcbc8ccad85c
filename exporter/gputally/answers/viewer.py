"""Whom an answer is for: a reader may be restricted to some tenants."""

from collections.abc import Collection
from typing import Final, NamedTuple


class Viewer(NamedTuple):
    """A reader who is restricted to `tenants`, None for one who may know all."""

    tenants: Collection[str] | None

    def sees(self, tenant: str) -> bool:
        """Whether the reader may know the names of this tenant's pods."""
        return self.tenants is None or tenant in self.tenants

    @property
    def sees_nodes(self) -> bool:
        """Whether the reader may know the names of nodes."""
        return self.tenants is None


ALL: Final = Viewer(None)
