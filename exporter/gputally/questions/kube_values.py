"""Readers of quantities and names as Kubernetes has them.

They return the value of a text, or raise ValueError with what to write instead.
"""

import re
from collections.abc import Callable
from typing import Final

from gputally.model.quantities import MOST, rounded_up
from gputally.questions.parameter import MOST_SHOWN

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def quantity(example: str, *, is_positive: bool = False) -> Callable[[str], str]:
    """A quantity of Kubernetes such as `example`, as it was written."""

    def read(text: str) -> str:
        try:
            thousandths = rounded_up(text, decimals=3)
        except ValueError:
            thousandths = -1
        if not 0 <= thousandths <= MOST:
            raise ValueError(f"'{text[:MOST_SHOWN]}' is not a quantity; use one such as {example}")
        if is_positive and not thousandths:
            raise ValueError(f"'{text[:MOST_SHOWN]}' is not valid; use more than 0")
        return text

    return read


def object_name(text: str) -> str:
    """A name of an object in Kubernetes."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"'{text[:MOST_SHOWN]}' is not a name in Kubernetes; use lower-case letters, digits, - and .")
    return text
