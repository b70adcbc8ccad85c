"""How a question ended that a process of its own was asked, see `web/ledger_process.py`."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

LENGTH_BYTES: Final = 4
"""What precedes each part of an answer: its length, most significant byte first."""


class Ended(StrEnum):
    """How a question ended."""

    ANSWERED = "answered"
    REJECTED = "rejected"
    """The ledger has no answer to it: the question must be changed."""
    TOO_LARGE = "too_large"
    """For an answer that needs more memory than the process may have."""
    FAILED = "failed"
    """The ledger cannot be read, or a bug."""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a question ended; a rejected one has the fields of an `InvalidQuestion`, at least the text.

    If it `is_last`, the process takes no other question.
    """

    ended: Ended
    parameter: str = ""
    text: str = ""
    names: tuple[str, ...] = ()
    exit_status: int = 0
    is_last: bool = False
