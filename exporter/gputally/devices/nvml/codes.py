"""What NVML's return codes mean for the caller.

Source: nvml.h, nvmlReturn_t.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Meaning(Enum):
    """What a call that did not succeed says."""

    UNSUPPORTED = "this device does not tell it, now or later"
    NOTHING = "nothing to tell now"
    LOST = "this GPU is lost"
    UNAVAILABLE = "NVML must be initialised anew"
    CHANGED = "the driver was replaced under this process"
    MISSING = "there is no driver"


_MEANINGS: Final[Mapping[int, Meaning]] = {
    1: Meaning.UNAVAILABLE,  # UNINITIALIZED
    2: Meaning.UNSUPPORTED,  # INVALID_ARGUMENT: the driver does not know the question, or no longer the MIG device
    3: Meaning.UNSUPPORTED,  # NOT_SUPPORTED
    4: Meaning.UNSUPPORTED,  # NO_PERMISSION
    6: Meaning.NOTHING,  # NOT_FOUND: no sample since, no process, no device of this index
    9: Meaning.MISSING,  # DRIVER_NOT_LOADED
    12: Meaning.MISSING,  # LIBRARY_NOT_FOUND
    13: Meaning.UNSUPPORTED,  # FUNCTION_NOT_FOUND: the driver is older than the function
    15: Meaning.LOST,  # GPU_IS_LOST
    16: Meaning.LOST,  # RESET_REQUIRED
    18: Meaning.CHANGED,  # LIB_RM_VERSION_MISMATCH
    21: Meaning.NOTHING,  # NO_DATA
    25: Meaning.UNSUPPORTED,  # ARGUMENT_VERSION_MISMATCH: of another driver's time
    999: Meaning.UNAVAILABLE,  # UNKNOWN
}


def meaning(code: int) -> Meaning:
    """What `code` means; 0 too, which pynvml raises where a list of processes is empty, means that there is nothing.

    So does a code that is not known here: one value less, and not one GPU less.
    """
    return _MEANINGS.get(code, Meaning.NOTHING)
