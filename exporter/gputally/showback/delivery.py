"""Delivers the report of a tenant as files."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from gputally.errors import ConfigError, Problem


class ReportPeriod(NamedTuple):
    """Both ends of the reports, in ISO 8601."""

    start: str
    end: str

    @property
    def folder(self) -> str:
        """The name of a folder for them: both days."""
        return f"{self.start[:10]}_{self.end[:10]}"


def file_name(tenant: str, extension: str) -> str:
    """The file of a tenant; characters that have a meaning in paths are encoded as in a URL."""
    name = quote(tenant, safe=" @")
    return f"{name.replace('.', '%2E', 1) if name.startswith('.') else name or 'none'}.{extension}"


def write_files(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write each named file as a whole. Raises: ConfigError if the folder cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in files:
            partial = folder / f".{name}.partial"
            partial.write_bytes(body)
            partial.replace(folder / name)
    except OSError as error:
        raise ConfigError([Problem(str(folder), "--directory", f"cannot be written: {error.strerror}")]) from None
