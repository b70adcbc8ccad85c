"""How soon the C library returns freed memory to the system."""

import ctypes
from typing import Final

_OPTIONS: Final = (
    (-8, 1),  # M_ARENA_MAX: the threads that write the ledger share the memory of the main thread
    (-3, 128 * 1024),  # M_MMAP_THRESHOLD: glibc raises it after the first large buffer, and keeps those that follow
    (-1, 128 * 1024),  # M_TRIM_THRESHOLD
)
"""Source: mallopt(3)."""


def return_freed_memory() -> None:
    """Return large buffers, such as those of scrapes, as soon as they are freed; elsewhere than in glibc, do nothing.

    Call it before any thread starts.
    """
    library = ctypes.CDLL(None)
    for option, value in _OPTIONS if hasattr(library, "mallopt") else ():
        library.mallopt(option, value)
