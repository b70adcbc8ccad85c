"""Amounts and lists in words, such as `8 GPUs`, `256 GiB memory` or `15.00 USD`."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from gputally.model.api.why import OccupantPod
from gputally.model.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

GPU_RESOURCE: Final = "nvidia.com/gpu"
_MILLI: Final = 1000
_MOST: Final = 10**9
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_BYTES: Final = {MEMORY: "memory", EPHEMERAL_STORAGE: "ephemeral storage"}


def amount_words(resource: str, amount: int) -> str:
    """The amount with its unit: `1 GPU`, `2.5 CPUs`, `256 GiB memory`, `3 nvidia.com/mig-1g.10gb`."""
    if resource == GPU_RESOURCE:
        return _counted(amount, "GPU")
    if resource == PODS:
        return _counted(amount, "pod")
    if resource == CPU:
        return _counted(amount / _MILLI, "CPU")
    if resource in _BYTES:
        return f"{byte_words(amount)} {_BYTES[resource]}"
    return f"{count_words(amount)} {resource}"


def bare_amount(resource: str, amount: int) -> str:
    """An amount without its resource, which was just named: `8`, `2.5`, `256 GiB`; nothing below 0."""
    least = max(0, amount)
    if resource in _BYTES:
        return byte_words(least)
    return count_words(least / _MILLI if resource == CPU else least)


def byte_words(amount: int) -> str:
    """Bytes in the largest unit that leaves at least 1, with at most three digits behind it: `1.5 GiB`."""
    value, unit = float(max(0, amount)), 0
    while value >= 1024 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - by definition
        value, unit = value / 1024, unit + 1
    return f"{value:.4g} {_UNITS[unit]}"


def file_size(count: int) -> str:
    """The size of a file of `count` bytes, to a tenth of its unit: `12.3 MiB`."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:  # noqa: PLR2004 - by definition
        value, units = value / 1024, units[1:]
    return f"{value:,.1f} {units[0]}" if units[0] != "B" else f"{count} B"


def gpu_words(count: float) -> str:
    """`1 GPU`, `0.5 GPUs`."""
    return _counted(count, "GPU")


def count_words(number: float) -> str:
    """`1,024`, `0.5`; what is beyond all clusters only as such."""
    if number > _MOST:
        return f"more than {_MOST:,}"
    return f"{number:,.0f}" if number == int(number) else f"{number:,.3f}".rstrip("0")


def pods_words(occupants: Sequence[OccupantPod]) -> str:
    """`2 pods`; `pods with 6 GPUs` if their number may not be known."""
    counts = [each.pods for each in occupants if each.pods is not None]
    if len(counts) == len(occupants):
        return _counted(sum(counts), "pod")
    return f"pods with {gpu_words(sum(each.gpus for each in occupants))}"


def pod_words(count: int) -> str:
    """`1 pod`, `2 pods`."""
    return _counted(count, "pod")


def money(decimal: str | None, currency: str) -> str:
    """`15.00 USD`; `unpriced` without a price, "" without a price book."""
    if not currency:
        return ""
    return "unpriced" if decimal is None else f"{Decimal(decimal):,.2f} {currency}"


def money_range(lowest: str | None, highest: str | None, currency: str) -> str:
    """`15.00 USD`, or `2.21 to 15.00 USD` if `highest` is given."""
    if lowest is None or highest is None or not currency:
        return money(lowest, currency)
    return f"{Decimal(lowest):,.2f} to {money(highest, currency)}"


def listed(parts: Iterable[str], joined_by: str = "and") -> str:
    """`a, b and c`, or with another word before the last one."""
    *most, last = parts
    return f"{', '.join(most)} {joined_by} {last}" if most else last


def _counted(number: float, what: str) -> str:
    return f"{count_words(number)} {what}{'' if number == 1 else 's'}"


def shortened(names: Sequence[str], most: int = 10) -> list[str]:
    """The first names, and how many more there are."""
    return list(names) if len(names) <= most else [*names[:most], f"{len(names) - most} more"]


def counted(count: int, noun: str) -> str:
    """`1 GPU`, `8 GPUs`; the plural only adds an s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
