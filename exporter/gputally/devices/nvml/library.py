"""Lazy wrapper of pynvml that maps NVML error codes to None or to gputally errors.

Source: nvml.h, nvmlReturn_t.
"""

from collections.abc import Callable, Mapping
from ctypes import c_void_p
from enum import Enum
from functools import partial
from types import ModuleType
from typing import Final, NewType, NoReturn, TypeVar

from msgspec import Struct

from gputally.errors import DriverChanged, DriverMissing, GpuLost, NvmlError, NvmlUnavailable

T = TypeVar("T")
Handle = NewType("Handle", c_void_p)
"""pynvml's pointer to a GPU or MIG device."""
REMEDY: Final = (
    "run on a node with an NVIDIA driver, in a pod with `runtimeClassName: nvidia` and NVIDIA_VISIBLE_DEVICES=all, "
    "or with the driver's libraries mounted"
)


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


class DeviceChanged(NvmlError):
    """The device no longer supports a call: its MIG layout changed, or its instance is gone."""


class Versions(Struct, frozen=True, kw_only=True):
    """Versions of the driver (`570.124.06`) and its NVML (`12.570.124.06`); "" if unknown."""

    driver: str
    nvml: str


class Nvml:
    """The functions of pynvml, as `calls`, and three ways to call them.

    Each may raise GpuLost, NvmlUnavailable, DriverChanged, DriverMissing.
    """

    def __init__(self, calls: ModuleType) -> None:
        self.calls = calls
        self._error: type[Exception] = calls.NVMLError

    def ask(self, call: Callable[..., T], *arguments: object) -> T | None:
        """The result of `call`, or None if the driver has no value."""
        try:
            return call(*arguments)
        except self._error as error:
            self._classify(error)
            return None

    def expect(self, call: Callable[..., T], *arguments: object) -> T | None:
        """Like `ask`, for calls that the device supported before; raises DeviceChanged if it no longer does."""
        try:
            return call(*arguments)
        except self._error as error:
            if self._classify(error) is Meaning.UNSUPPORTED:
                raise DeviceChanged(f"NVML: no longer supported: {error}") from error
            return None

    def demand(self, call: Callable[..., T], *arguments: object) -> T:
        """Like `ask`, for required values; raises NvmlError if there is none."""
        try:
            return call(*arguments)
        except self._error as error:
            self._classify(error)
            raise NvmlError(f"NVML: {error}") from error

    def supports(self, call: Callable[..., object], *arguments: object) -> bool:
        """Whether the call is supported: it returned a value, or has no data at the moment."""
        try:
            call(*arguments)
        except self._error as error:
            return self._classify(error) is not Meaning.UNSUPPORTED
        return True

    def gauge(self, *candidates: Callable[[], T]) -> Callable[[], T | None]:
        """A repeatable query for the first supported of `candidates`; it always returns None if none is supported."""
        for candidate in candidates:
            if self.supports(candidate):
                return partial(self.ask, candidate)
        return _no_value

    def versions(self) -> Versions:
        """The installed versions."""
        driver, nvml = self.calls.nvmlSystemGetDriverVersion, self.calls.nvmlSystemGetNVMLVersion
        return Versions(driver=self.ask(driver) or "", nvml=self.ask(nvml) or "")

    def initialise(self) -> None:
        """Initialise NVML. Each call needs a matching `shut_down`."""
        self.demand(self.calls.nvmlInit)

    def shut_down(self) -> None:
        """Shut NVML down. Ignores errors, because NVML may have lost the initialisation."""
        try:
            self.calls.nvmlShutdown()
        except self._error:
            return

    def _classify(self, error: Exception) -> Meaning:
        """The meaning of an error that affects only this call; raises for all others."""
        code: int = getattr(error, "value", 0)
        what = meaning(code)
        if what not in {Meaning.UNSUPPORTED, Meaning.NOTHING}:
            _raise_for(what, code, error)
        return what


def load() -> Nvml:
    """Load NVIDIA's pynvml (package nvidia-ml-py) without initialising it.

    Raises NvmlError if the module is missing, or is the unrelated package `pynvml`, which uses the same name.
    """
    try:
        import pynvml  # noqa: PLC0415 - the aggregator does not need it and may not have it installed
    except ImportError as error:
        raise NvmlError("module pynvml is not installed; install gputally[agent]") from error
    return adopt(pynvml)


def adopt(module: ModuleType) -> Nvml:
    """Wrap `module`; raises NvmlError if it is not NVIDIA's."""
    if not hasattr(module, "_nvmlGetFunctionPointer"):
        raise NvmlError(
            f"{module.__file__} is not NVIDIA's pynvml; "
            "run `pip uninstall pynvml`, then `pip install --force-reinstall nvidia-ml-py`"
        )
    return Nvml(module)


def _no_value() -> None:
    return None


def _raise_for(what: Meaning, code: int, error: Exception) -> NoReturn:
    message = f"NVML: {error} (code {code})"
    match what:
        case Meaning.LOST:
            raise GpuLost(message) from error
        case Meaning.CHANGED:
            raise DriverChanged(f"{message}: the driver was replaced; this process must restart") from error
        case Meaning.MISSING:
            raise DriverMissing(f"{message}; {REMEDY}") from error
        case _:
            raise NvmlUnavailable(message) from error
