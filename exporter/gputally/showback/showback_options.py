"""What the user chose for `gputally showback`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gputally.top.authorization import Credentials

FORMATS: Final = {"html": "html", "markdown": "md", "csv": "csv"}
"""Formats of files, with their extensions."""


@dataclass(frozen=True, kw_only=True)
class ShowbackOptions:
    """Where to ask, for which report, and where to deliver it: files, a webhook or both.

    `parameters` are those of `/api/v1/report`, for every tenant.
    """

    url: str
    credentials: Credentials
    parameters: Mapping[str, str]
    directory: Path | None
    formats: tuple[str, ...]
    webhook_url_file: Path | None
