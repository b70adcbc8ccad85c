"""Numbers and names that labels and annotations state, which anyone may have written."""

from typing import Final

from gputally.model.kube.pods import Texts

MOST_PODS: Final = 100_000
"""More pods than a gang has; anyone may state more."""
NO_GANG: Final = 1
"""The size of what is a gang by its labels alone."""
_LONGEST_NAME: Final = 253


def count_of(text: str) -> int:
    """A number that a label or an annotation states; 0 for what is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004 - digits


def pods_in(values: Texts, key: str) -> int:
    """The number of pods that the value states, 0 for none."""
    text = values.get(key)
    return min(count_of(text), MOST_PODS) if text else 0


def first_of(values: Texts | None, keys: tuple[str, ...]) -> str:
    """The first of the values that is the name of an object, "" for none."""
    if not values:
        return ""
    for key in keys:  # each new pod asks often: a generator takes twice the time
        if (name := values.get(key)) and len(name) <= _LONGEST_NAME:
            return name
    return ""
