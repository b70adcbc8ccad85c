"""Logging: one line an event, as text for people or JSON for machines, to standard error."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class TextFormatter(logging.Formatter):
    """Time (UTC), level and message; what has several lines is set out in one, without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, with the traceback of a bug below it."""
        line = f"{utc(record)} {record.levelname:<7} {_one_line(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and what was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        entry = {
            "time": utc(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {key: str(value) for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def _one_line(text: str) -> str:
    """A name that somebody else chose must neither pass as a line of ours nor move a terminal's cursor."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in " | ".join(text.splitlines()))


def utc(record: logging.LogRecord) -> str:
    """When it was logged: 2026-06-08T06:00:00.123Z."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def configure(*, level: str, form: str) -> None:
    """Send everything from `level` on to standard error in the given form (text or json)."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=_LEVELS[level], handlers=[handler], force=True)
