"""Lists and numbers in sentences."""

from collections.abc import Sequence


def listed(names: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else names[0]


def shortened(names: Sequence[str], most: int = 10) -> list[str]:
    """The first names, and how many more there are."""
    return list(names) if len(names) <= most else [*names[:most], f"{len(names) - most} more"]


def counted(count: int, noun: str) -> str:
    """`1 GPU`, `8 GPUs`; the plural only adds an s."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
