"""What our NVML plays: a node's GPUs as values, the file that says so, and what must be measured of them.

Instants are seconds since the script's origin, if they are not named `_us`. A curve's past must stay what it was when
a script is replaced: the library derives samples, energy and activity from the present script alone.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

from tests.nvml.statement import US, Curve, Seconds, decimal, joined, load, micro, milli, optional, span

MIB: Final = 1 << 20
NO_INSTANCE: Final = 0xFFFFFFFF
FOREVER: Final = None

Kind = Literal["compute", "graphics", "mps"]
KINDS: Final[tuple[Kind, ...]] = ("compute", "graphics", "mps")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A function of NVML that answers `code`; `*` are all, and a name stands for its versions `_v2`, `_v3` too.

    A GPU's fault is met with the handle of that GPU, a MIG device's with its own, the script's with every call.
    """

    function: str
    code: int
    start: Seconds | None = None
    end: Seconds | None = None

    def line(self) -> str:
        return f"error {self.function} {self.code}{span(self.start, self.end)}"


@dataclass(frozen=True, kw_only=True)
class Hang:
    """A function that answers `seconds` late or, if they are None, when a later script no longer says so."""

    function: str
    seconds: Seconds | None = FOREVER
    start: Seconds | None = None
    end: Seconds | None = None

    def line(self) -> str:
        lasting = "forever" if self.seconds is FOREVER else decimal(self.seconds)
        return f"hang {self.function} {lasting}{span(self.start, self.end)}"


@dataclass(frozen=True, kw_only=True)
class Process:
    """It uses a GPU, or the MIG device of these instances, while it lives."""

    pid: int
    memory_mib: int | None = 1024
    """None: the driver does not know."""
    kind: Kind = "compute"
    gi: int = NO_INSTANCE
    ci: int = NO_INSTANCE
    start: Seconds | None = None
    end: Seconds | None = None
    curve: Curve = ()
    """Its utilisation, which may be nonsense above 100, as drivers give it of zombies."""

    def lines(self) -> Iterator[str]:
        memory = -1 if self.memory_mib is None else self.memory_mib * MIB
        who = f"{self.pid} {KINDS.index(self.kind)} {memory} {self.gi} {self.ci}"
        yield f"process {who}{span(self.start, self.end)}"
        yield from load(self.curve)


@dataclass(frozen=True, kw_only=True)
class Mig:
    """A MIG device: one compute instance of one GPU instance."""

    uuid: str
    index: int
    gi: int
    ci: int = 0
    profile: str = "1g.10gb"
    gi_slices: int = 1
    ci_slices: int = 1
    processors: int = 16
    memory_mib: int = 9984
    used_mib: int = 0
    curve: Curve = ()
    faults: Sequence[Fault | Hang] = ()

    def lines(self) -> Iterator[str]:
        numbers = (self.index, self.gi, self.ci, self.gi_slices, self.ci_slices, self.processors)
        yield f"mig {self.uuid} {self.profile} {joined(numbers)} {self.memory_mib * MIB} {self.used_mib * MIB}"
        yield from load(self.curve)
        yield from (fault.line() for fault in self.faults)


@dataclass(frozen=True, kw_only=True)
class Xid:
    at: Seconds
    code: int
    gi: int = NO_INSTANCE
    ci: int = NO_INSTANCE

    def line(self) -> str:
        return f"xid {micro(self.at)} {self.code} {self.gi} {self.ci}"


@dataclass(frozen=True, kw_only=True)
class Throttle:
    """The clocks are held down for the reason that this field counts: 74, 76, 269, 270 or 271."""

    field: int
    start: Seconds
    end: Seconds | None = None

    def line(self) -> str:
        return f"throttle {self.field}{span(self.start, self.end)}"


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """An H100, if nothing else is said; what is None is not supported."""

    uuid: str
    model: str = "NVIDIA H100 80GB HBM3"
    minor: int = 0
    pci: str = "00000000:18:00.0"
    architecture: int = 9
    gpm: bool = True
    samples: bool = True
    memory_mib: int = 81559
    used_mib: int = 0
    reserved_mib: int = 518
    curve: Curve = ()
    idle_watts: float = 70
    max_watts: float = 700
    power_limit_watts: float | None = 700
    power_scopes: Sequence[int] = (0,)
    """Of fields 185 and 186: 0 GPU, 1 module, 2 memory; all tell the same."""
    energy_since: Seconds | None = 0
    """When the energy counter stood at 0; this and each of `resets` also begin the throttle counters."""
    resets: Sequence[Seconds] = ()
    temperature: int | None = 40
    clocks_mhz: tuple[int, int, int, int] | None = (1980, 2619, 1980, 2619)
    """SM, memory, and the most of each."""
    reasons: int | None = 0
    """Bits that are always set among the reasons of the present clocks."""
    throttles: Sequence[Throttle] = ()
    ecc: tuple[int, int, int, int] | None = (0, 0, 0, 0)
    """Volatile corrected and uncorrected, aggregate corrected and uncorrected."""
    remapped: tuple[int, int, int, int] | None = (0, 0, 0, 0)
    """Rows for corrected and uncorrected errors, whether more is pending, whether it failed."""
    shares: Sequence[tuple[int, int]] = ()
    """Percent of the utilisation that a GPM metric shows, 100 if not given; that of 10 is memory utilisation's too."""
    mig_mode: bool | None = False
    """None: this GPU cannot be cut."""
    mig: Sequence[Mig] = ()
    processes: Sequence[Process] = ()
    xids: Sequence[Xid] = ()
    lost: Seconds | None = None
    faults: Sequence[Fault | Hang] = ()

    def lines(self) -> Iterator[str]:
        yield f"gpu {self.uuid}"
        yield from (fault.line() for fault in self.faults)
        yield from load(self.curve)
        yield from self._identity()
        yield from self._gauges()
        yield from (throttle.line() for throttle in self.throttles)
        yield from (xid.line() for xid in self.xids)
        yield from (line for mig in self.mig for line in mig.lines())
        yield from (line for process in self.processes for line in process.lines())

    def _identity(self) -> Iterator[str]:
        yield f"name {self.model}"
        yield f"pci {self.pci}"
        yield f"minor {self.minor}"
        yield f"architecture {self.architecture}"
        yield f"gpm {self.gpm:d}"
        yield f"samples {self.samples:d}"
        if self.mig_mode is not None:
            yield f"mig_mode {self.mig_mode:d} {self.mig_mode:d}"

    def _gauges(self) -> Iterator[str]:
        yield f"memory {self.memory_mib * MIB} {self.used_mib * MIB} {self.reserved_mib * MIB}"
        yield f"power {milli(self.idle_watts)} {milli(self.max_watts)}"
        yield f"power_scopes {sum(1 << scope for scope in self.power_scopes)}"
        yield from optional("power_limit", milli(self.power_limit_watts))
        yield from optional("energy_since", micro(self.energy_since))
        yield from optional("lost", micro(self.lost))
        yield from optional("temperature", self.temperature)
        yield from optional("reasons", self.reasons)
        yield from optional("clocks", self.clocks_mhz)
        yield from optional("ecc", self.ecc)
        yield from optional("remapped", self.remapped)
        yield from (f"reset {micro(reset)}" for reset in self.resets)
        yield from (f"share {metric} {percent}" for metric, percent in self.shares)


@dataclass(frozen=True, kw_only=True)
class Script:
    origin_us: int
    gpus: Sequence[Gpu] = ()
    driver: str = "570.124.06"
    nvml: str = "12.570.124.06"
    cuda: int = 12080
    init_error: int = 0
    mismatch: Seconds | None = None
    """From then on all calls answer 18, as after an upgrade of the driver."""
    uninitialised: Seconds | None = None
    """From then on all calls answer 1, until NVML is initialised anew."""
    faults: Sequence[Fault | Hang] = ()

    def since_origin(self, epoch_us: int) -> Fraction:
        """Such an instant as this script's parts name it."""
        return Fraction(epoch_us - self.origin_us, US)

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def write(self, path: Path) -> None:
        """At once: no reader sees a half of it."""
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False) as file:
            file.write(self.text())
        os.replace(file.name, path)  # noqa: PTH105 - the pair of names says what it does

    def _lines(self) -> Iterator[str]:
        yield f"origin {self.origin_us}"
        yield f"driver {self.driver}"
        yield f"nvml {self.nvml}"
        yield f"cuda {self.cuda}"
        yield f"init_error {self.init_error}"
        yield from optional("mismatch", micro(self.mismatch))
        yield from optional("uninitialised", micro(self.uninitialised))
        yield from (fault.line() for fault in self.faults)
        for gpu in self.gpus:
            yield from gpu.lines()


def integral(curve: Curve, from_us: int, to_us: int) -> Fraction:
    """Percent times µs, exactly; both instants are µs since the origin."""
    starts = [micro(at) for at, _ in curve]
    ends = [*starts[1:], to_us]
    return sum(
        (
            Fraction(milli(percent), 1000) * max(0, min(end, to_us) - max(start, from_us))
            for (_, percent), start, end in zip(curve, starts, ends, strict=False)
        ),
        Fraction(0),
    )


def average(curve: Curve, from_us: int, to_us: int) -> Fraction:
    """Percent; what a GPM metric shows of two samples at these instants."""
    return integral(curve, from_us, to_us) / (to_us - from_us)


def energy_mj(gpu: Gpu, from_us: int, to_us: int) -> Fraction:
    """What a GPU uses between two instants, in µs since the origin."""
    idle, full = Fraction(milli(gpu.idle_watts)), Fraction(milli(gpu.max_watts))
    return (idle * (to_us - from_us) + (full - idle) * integral(gpu.curve, from_us, to_us) / 100) / US


def counted_mj(gpu: Gpu, now_us: int) -> int:
    """What the GPU's counter of energy shows at `now_us` since the origin."""
    starts = (micro(start) for start in (gpu.energy_since or 0, *gpu.resets))
    return int(energy_mj(gpu, max(start for start in starts if start <= now_us), now_us))
