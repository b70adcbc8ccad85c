"""Pods that do not exist yet, as they take places in a copy of the room: what stands for their UIDs."""

from typing import Final

PLANNED: Final = "planned "
"""Begins that of a pod that a forecast has placed."""
TRIED: Final = "what-if "
"""The same while the forecast is made."""


def is_planned(uid: str) -> bool:
    """Whether a pod does not exist yet."""
    return uid.startswith((PLANNED, TRIED))
