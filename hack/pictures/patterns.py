"""Regular expressions as dashboards hold them."""

import re
from collections.abc import Callable


def matcher(text: str) -> Callable[[str], re.Match[str] | None]:
    """A test for names: between slashes the expression may match a part of them, without it is the whole."""
    if found := re.fullmatch(r"/(.*)/([a-z]*)", text, re.DOTALL):
        return re.compile(found[1], re.IGNORECASE if "i" in found[2] else 0).search
    return re.compile(text).fullmatch
