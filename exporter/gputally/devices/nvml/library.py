"""pynvml, loaded late, initialised once, and asked so that a refusal is a value or one of our errors."""

from collections.abc import Callable
from ctypes import c_void_p
from functools import partial
from types import ModuleType
from typing import Final, NewType, NoReturn, TypeVar

from msgspec import Struct

from gputally.devices.nvml.codes import Meaning, meaning
from gputally.errors import DriverChanged, DriverMissing, GpuLost, NvmlError, NvmlUnavailable

T = TypeVar("T")
Handle = NewType("Handle", c_void_p)
"""Of a GPU or a MIG device: pynvml's pointer to it."""
REMEDY: Final = (
    "run on a node with an NVIDIA driver, in a pod with `runtimeClassName: nvidia` and NVIDIA_VISIBLE_DEVICES=all, "
    "or with the driver's libraries mounted"
)


class DeviceChanged(NvmlError):
    """What this device supported it no longer does: it was cut, or put together, or its instance is gone."""


class Versions(Struct, frozen=True, kw_only=True):
    """Of the driver (`570.124.06`) and of its NVML (`12.570.124.06`); "" where it does not tell."""

    driver: str
    nvml: str


class Nvml:
    """The functions of pynvml, as `calls`, and three ways to call them.

    Errors of each: GpuLost, NvmlUnavailable, DriverChanged, DriverMissing.
    """

    def __init__(self, calls: ModuleType) -> None:
        self.calls = calls
        self._error: type[Exception] = calls.NVMLError

    def ask(self, call: Callable[..., T], *arguments: object) -> T | None:
        """What `call` answers, None where the driver does not tell it."""
        try:
            return call(*arguments)
        except self._error as error:
            self._weigh(error)
            return None

    def expect(self, call: Callable[..., T], *arguments: object) -> T | None:
        """The same of what the device supported before; DeviceChanged if it no longer does."""
        try:
            return call(*arguments)
        except self._error as error:
            if self._weigh(error) is Meaning.UNSUPPORTED:
                raise DeviceChanged(f"NVML: no longer supported: {error}") from error
            return None

    def demand(self, call: Callable[..., T], *arguments: object) -> T:
        """The same of what must be; NvmlError where there is no answer."""
        try:
            return call(*arguments)
        except self._error as error:
            self._weigh(error)
            raise NvmlError(f"NVML: {error}") from error

    def supports(self, call: Callable[..., object], *arguments: object) -> bool:
        """Whether asking again may help: it answered, or had nothing to tell just now."""
        try:
            call(*arguments)
        except self._error as error:
            return self._weigh(error) is not Meaning.UNSUPPORTED
        return True

    def gauge(self, *candidates: Callable[[], T]) -> Callable[[], T | None]:
        """The first of `candidates` that the device supports, to be asked again and again, or else None for ever."""
        for candidate in candidates:
            if self.supports(candidate):
                return partial(self.ask, candidate)
        return _nothing

    def versions(self) -> Versions:
        """What runs here."""
        driver, nvml = self.calls.nvmlSystemGetDriverVersion, self.calls.nvmlSystemGetNVMLVersion
        return Versions(driver=self.ask(driver) or "", nvml=self.ask(nvml) or "")

    def initialise(self) -> None:
        """Begin; each time is to be ended by `shut_down`."""
        self.demand(self.calls.nvmlInit)

    def shut_down(self) -> None:
        """End, as far as NVML still knows of the beginning."""
        try:
            self.calls.nvmlShutdown()
        except self._error:
            return

    def _weigh(self, error: Exception) -> Meaning:
        """What the code means, if it is this call's affair alone."""
        code: int = getattr(error, "value", 0)
        what = meaning(code)
        if what not in {Meaning.UNSUPPORTED, Meaning.NOTHING}:
            _complain(what, code, error)
        return what


def load() -> Nvml:
    """NVIDIA's pynvml (package nvidia-ml-py), not initialised yet.

    Raises: NvmlError for no such module, and for the package `pynvml`, which takes its name and is not NVIDIA's.
    """
    try:
        import pynvml  # noqa: PLC0415 - the aggregator has no use for it, nor perhaps the package
    except ImportError as error:
        raise NvmlError("module pynvml is not installed; install gputally[agent]") from error
    return adopt(pynvml)


def adopt(module: ModuleType) -> Nvml:
    """NVML by `module`, if that is NVIDIA's; NvmlError if not."""
    if not hasattr(module, "_nvmlGetFunctionPointer"):
        raise NvmlError(
            f"{module.__file__} is not NVIDIA's pynvml; "
            "run `pip uninstall pynvml`, then `pip install --force-reinstall nvidia-ml-py`"
        )
    return Nvml(module)


def _nothing() -> None:
    return None


def _complain(what: Meaning, code: int, error: Exception) -> NoReturn:
    told = f"NVML: {error} (code {code})"
    match what:
        case Meaning.LOST:
            raise GpuLost(told) from error
        case Meaning.CHANGED:
            raise DriverChanged(f"{told}: the driver was replaced; this process must restart") from error
        case Meaning.MISSING:
            raise DriverMissing(f"{told}; {REMEDY}") from error
        case _:
            raise NvmlUnavailable(told) from error
