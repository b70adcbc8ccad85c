"""What the annotations of a pod say about the progress of its job. Anyone who may patch the pod writes them."""

import re
from typing import Final

from msgspec import Struct

from gputally.model.kube.pods import Texts
from gputally.model.units import MICRO

PROGRESS: Final = "gputally.io/progress"
"""How many units of work the job has done."""
PROGRESS_UNIT: Final = "gputally.io/progress-unit"
"""What one of them is, such as `epoch`."""
DEFAULT_UNIT: Final = "unit"
_NUMBER: Final = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,19}")


class Progress(Struct, frozen=True, gc=False):
    """Work done since the start of the job, in millionths of `unit`."""

    micro: int
    unit: str


def progress_of(annotations: Texts | None) -> Progress | None:
    """The progress that a pod states; None without one, or if it is not a plain decimal of a bounded length."""
    if not annotations or not (text := annotations.get(PROGRESS)) or not (found := _NUMBER.fullmatch(text)):
        return None
    whole, decimals = found.groups("")
    unit = annotations.get(PROGRESS_UNIT) or ""
    return Progress(int(whole) * MICRO + int(decimals.ljust(6, "0")), unit if _WORD.fullmatch(unit) else DEFAULT_UNIT)
