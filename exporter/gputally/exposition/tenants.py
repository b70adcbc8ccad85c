"""Restricts an exposition to the series of some tenants."""

import re
from collections.abc import Collection
from typing import Final

from gputally.exposition.text_format import escaped

_TENANT: Final = re.compile(
    rb'[a-zA-Z_:][\w:]*\{(?:\w+="(?:[^"\\\n]|\\.)*",)*?(?:tenant|team)="((?:[^"\\\n]|\\.)*)"[,}]'
)
"""Matches at the start of a line, with any label values: quotes in them are escaped."""


def filter_by_tenant(exposition: bytes, tenants: Collection[str]) -> bytes:
    """Only the series of these tenants, with all comment lines (`# ...`).

    Series without the label `tenant`, or `team` in metrics of others, such as the capacity of nodes, are removed.
    """
    escaped_tenants = {escaped(tenant).encode() for tenant in tenants}
    return b"".join(line + b"\n" for line in exposition.split(b"\n")[:-1] if _belongs(line, escaped_tenants))


def _belongs(line: bytes, escaped_tenants: Collection[bytes]) -> bool:
    if line.startswith(b"#"):
        return True
    found = _TENANT.match(line)
    return found is not None and found[1] in escaped_tenants
