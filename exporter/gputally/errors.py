"""The errors that a user or an operator sees, by what the caller does next.

GputallyError            shown in one line; all else is a bug
├─ ConfigError           the user fixes it
├─ ApiError
│  ├─ ApiUnreachable     try again, with back-off
│  ├─ ApiForbidden       name the missing RBAC rule
│  └─ VersionExpired     code 410: list again
├─ MalformedObject       skip this object, count it
├─ LedgerError           leave the file untouched
│  ├─ LedgerUnwritable   keep accounting in memory, write later
│  └─ DetailRolledUp     ask for sums of whole days, exit status 2
├─ AddressTaken          choose another address
├─ AggregatorUnreachable exit status 8
├─ NotFound              exit status 12
├─ PrometheusError       exit status 11
├─ KubeletError          exit status 6
│  ├─ KubeletUnreachable try again, with back-off
│  └─ KubeletRefused     fix the mount or the node
└─ NvmlError             exit status 7
   ├─ DriverMissing      run where the driver is, or mount it
   ├─ DriverChanged      exit, to restart with the new driver
   ├─ GpuLost            continue without this GPU, look for it again, with back-off
   └─ NvmlUnavailable    initialise NVML again, with back-off
"""

from collections.abc import Iterable
from dataclasses import dataclass


class GputallyError(Exception):
    """Any problem that a user can fix or wait out; its text is one clear message."""

    exit_status = 1


@dataclass(frozen=True, order=True)
class Problem:
    """One problem to fix in one file: where it is, what is wrong, what to use instead."""

    file: str
    field: str
    text: str

    def __str__(self) -> str:
        """`prices.yaml: rules[2].purchase: unknown 'spto'; use on-demand, spot or reserved`."""
        return ": ".join(part for part in (self.file, self.field, self.text) if part)


class ConfigError(GputallyError):
    """All problems at once: one round of editing is enough."""

    exit_status = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class ApiError(GputallyError):
    """The Kubernetes API server did not answer a request."""

    exit_status = 3


class ApiUnreachable(ApiError):
    """No response, a broken response, or a response that asks to retry later."""


class ApiForbidden(ApiError):
    """The server authenticates us but denies the request; the message names the missing rule."""


class VersionExpired(ApiError):
    """The server no longer has the history asked for (code 410)."""


class MalformedObject(GputallyError):
    """An API object with contradictory fields; it is counted and excluded."""

    def __init__(self, uid: str, text: str) -> None:
        super().__init__(f"object {uid}: {text}")


class LedgerError(GputallyError):
    """The ledger cannot be opened or trusted; nothing in it was changed."""

    exit_status = 4


class LedgerUnwritable(LedgerError):
    """The ledger refused a write (full disk, I/O error); the same write may succeed later."""


class LedgerDamaged(LedgerError):
    """Rows of the ledger cannot be read, or contradict each other; the readable rows are still correct."""


class DetailRolledUp(LedgerError):
    """A question about single allocations or parts of a day, of which the retention left only sums by day."""

    exit_status = 2


class AddressTaken(GputallyError):
    """The address to listen on belongs to another process."""

    exit_status = 5


class AggregatorUnreachable(GputallyError):
    """The aggregator does not answer, or not with what is asked for; the message names the remedy."""

    exit_status = 8


class AggregatorRefused(AggregatorUnreachable):
    """The aggregator rejects the request, and would do so again."""


class NotFound(GputallyError):
    """The cluster has no such pod, or it requests no GPU; the message says where else to look."""

    exit_status = 12


class PrometheusError(GputallyError):
    """A Prometheus does not answer, or lacks what an import needs; the message names the remedy."""

    exit_status = 11


class DeliveryFailed(GputallyError):
    """A webhook did not take a report. The message never shows its URL, which is a secret."""

    exit_status = 10


class DeliveryRejected(DeliveryFailed):
    """The webhook rejected the report, and would reject it the next time, too."""


class KubeletError(GputallyError):
    """The kubelet of this node did not report the device allocations."""

    exit_status = 6


class KubeletUnreachable(KubeletError):
    """No response, a broken response, or a response that asks to retry later."""


class KubeletRefused(KubeletError):
    """The kubelet or its socket rejects our calls; the message names what to mount or to install."""


class NvmlError(GputallyError):
    """The NVIDIA driver did not report this node's GPUs."""

    exit_status = 7


class DriverMissing(NvmlError):
    """No library, no driver or no GPU is visible; the message says how to make them visible."""


class DriverChanged(NvmlError):
    """The driver was replaced while this process ran; the loaded library no longer matches it."""


class GpuLost(NvmlError):
    """This GPU fell off the bus or waits for a reset; the others continue."""


class NvmlUnavailable(NvmlError):
    """NVML lost the state of this process, or reports an unknown error."""
