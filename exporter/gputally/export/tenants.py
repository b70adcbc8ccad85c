"""An exposition as one tenant may see it."""

import re
from collections.abc import Collection
from typing import Final

from gputally.export.text import escaped

_TENANT: Final = re.compile(rb'[a-zA-Z_:][\w:]*\{(?:\w+="(?:[^"\\\n]|\\.)*",)*?tenant="((?:[^"\\\n]|\\.)*)"[,}]')
"""At the start of a line, of whatever values the labels have: quotes in them are escaped."""


def only(exposition: bytes, tenants: Collection[str]) -> bytes:
    """The series of these tenants, and no others; what is said of metrics (`# ...`) stays.

    What has no label `tenant`, as the capacity of all nodes, is nobody's and is left out.
    """
    shown = {escaped(tenant).encode() for tenant in tenants}
    return b"".join(line + b"\n" for line in exposition.split(b"\n")[:-1] if _belongs(line, shown))


def _belongs(line: bytes, shown: Collection[bytes]) -> bool:
    if line.startswith(b"#"):
        return True
    found = _TENANT.match(line)
    return found is not None and found[1] in shown
