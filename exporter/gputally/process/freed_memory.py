"""How soon the C library returns freed memory to the system."""

import ctypes
from typing import Final

_OPTIONS: Final = (
    (-8, 1),  # M_ARENA_MAX: threads, such as those that write the ledger, share the memory of the main thread
    (-3, 2 << 20),  # M_MMAP_THRESHOLD: left alone, it grows with each larger buffer that is freed
    (-1, 4 << 20),  # M_TRIM_THRESHOLD: with less than a scrape uses, each one would ask for its memory anew
)
"""Source: mallopt(3)."""


def return_freed_memory() -> None:
    """Return large buffers, such as those of scrapes, as soon as they are freed; elsewhere than in glibc, do nothing.

    Call it before any thread starts.
    """
    library = ctypes.CDLL(None)
    for option, value in _OPTIONS if hasattr(library, "mallopt") else ():
        library.mallopt(option, value)
