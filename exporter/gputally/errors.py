"""The errors a user or an operator meets, split by what the caller does next.

GputallyError            shown in one line; all else is a bug
├─ ConfigError           the user mends it
├─ ApiError
│  ├─ ApiUnreachable     try again, with back-off
│  ├─ ApiForbidden       name the missing RBAC rule
│  └─ VersionExpired     code 410: list again
├─ MalformedObject       skip this object, count it
├─ LedgerError           leave the file untouched
│  └─ LedgerUnwritable   keep accounting in memory, write later
├─ AddressTaken          choose another address
├─ KubeletError          exit status 6
│  ├─ KubeletUnreachable try again, with back-off
│  └─ KubeletRefused     mend the mount or the node
└─ NvmlError             exit status 7
   ├─ DriverMissing      run where the driver is, or mount it
   ├─ DriverChanged      end, to be started again with the new driver
   ├─ GpuLost            do without this GPU, look for it again, with back-off
   └─ NvmlUnavailable    initialise NVML anew, with back-off
"""

from collections.abc import Iterable
from dataclasses import dataclass


class GputallyError(Exception):
    """Anything a user can mend or wait out; its text is one clear message."""

    exit_status = 1


@dataclass(frozen=True, order=True)
class Problem:
    """One thing to mend in one file: where it is, what is wrong, what to write instead."""

    file: str
    field: str
    text: str

    def __str__(self) -> str:
        """`prices.yaml: rules[2].purchase: unknown 'spto'; write on-demand, spot or reserved`."""
        return ": ".join(part for part in (self.file, self.field, self.text) if part)


class ConfigError(GputallyError):
    """All problems at once: one round of editing is enough."""

    exit_status = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class ApiError(GputallyError):
    """The Kubernetes API server did not give what was asked for."""

    exit_status = 3


class ApiUnreachable(ApiError):
    """No answer, a broken answer, or an answer that says: later."""


class ApiForbidden(ApiError):
    """The server knows us and refuses; the message names the missing rule."""


class VersionExpired(ApiError):
    """The server no longer has the history asked for (code 410)."""


class MalformedObject(GputallyError):
    """An API object that contradicts itself; it is counted and left out."""

    def __init__(self, uid: str, text: str) -> None:
        super().__init__(f"object {uid}: {text}")


class LedgerError(GputallyError):
    """The ledger cannot be opened or trusted; nothing in it was changed."""

    exit_status = 4


class LedgerUnwritable(LedgerError):
    """The ledger refused a write (full disk, I/O error); the same write may succeed later."""


class LedgerDamaged(LedgerError):
    """Rows of the ledger cannot be read, or contradict each other; what can be read is still right."""


class AddressTaken(GputallyError):
    """The address to listen on belongs to another process."""

    exit_status = 5


class KubeletError(GputallyError):
    """The kubelet of this node did not tell who holds which devices."""

    exit_status = 6


class KubeletUnreachable(KubeletError):
    """No answer, a broken answer, or an answer that says: later."""


class KubeletRefused(KubeletError):
    """The kubelet or its socket will not serve us; the message names what to mount or to install."""


class NvmlError(GputallyError):
    """The NVIDIA driver did not tell of this node's GPUs."""

    exit_status = 7


class DriverMissing(NvmlError):
    """No library, no driver or no GPU in sight; the message says how to bring them into it."""


class DriverChanged(NvmlError):
    """The driver was replaced under this process, whose library no longer fits it."""


class GpuLost(NvmlError):
    """This GPU fell off the bus or waits for a reset; the others go on."""


class NvmlUnavailable(NvmlError):
    """NVML forgot this process, or does not say what is wrong."""
