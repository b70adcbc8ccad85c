"""Map NVML return codes to their meaning for the caller.

Source: nvml.h, nvmlReturn_t.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Meaning(Enum):
    """The meaning of a failed call."""

    UNSUPPORTED = "this device never supports it"
    NOTHING = "no data now"
    LOST = "this GPU is lost"
    UNAVAILABLE = "NVML must be reinitialised"
    CHANGED = "the driver was replaced under this process"
    MISSING = "there is no driver"


_MEANINGS: Final[Mapping[int, Meaning]] = {
    1: Meaning.UNAVAILABLE,  # UNINITIALIZED
    2: Meaning.UNSUPPORTED,  # INVALID_ARGUMENT: unknown query, or the MIG device is gone
    3: Meaning.UNSUPPORTED,  # NOT_SUPPORTED
    4: Meaning.UNSUPPORTED,  # NO_PERMISSION
    6: Meaning.NOTHING,  # NOT_FOUND: no new sample, no process, no device with this index
    9: Meaning.MISSING,  # DRIVER_NOT_LOADED
    12: Meaning.MISSING,  # LIBRARY_NOT_FOUND
    13: Meaning.UNSUPPORTED,  # FUNCTION_NOT_FOUND: the driver is older than the function
    15: Meaning.LOST,  # GPU_IS_LOST
    16: Meaning.LOST,  # RESET_REQUIRED
    18: Meaning.CHANGED,  # LIB_RM_VERSION_MISMATCH
    21: Meaning.NOTHING,  # NO_DATA
    25: Meaning.UNSUPPORTED,  # ARGUMENT_VERSION_MISMATCH: struct version of another driver version
    999: Meaning.UNAVAILABLE,  # UNKNOWN
}


def meaning(code: int) -> Meaning:
    """The meaning of `code`. 0, which pynvml raises for an empty process list, means no data.

    So does an unknown code: it costs one value, not the whole GPU.
    """
    return _MEANINGS.get(code, Meaning.NOTHING)
