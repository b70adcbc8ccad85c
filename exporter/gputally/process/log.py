"""Log to standard error: one line per event, as text or JSON, and repeated warnings only once, until recovery."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
MAX_TEXTS: Final = 100
"""Maximum number of different texts until `forget`; further texts are not logged, to limit texts that vary."""


class TextFormatter(logging.Formatter):
    """Time (UTC), level and message in one line, without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, followed by the traceback if there is one."""
        line = f"{utc(record)} {record.levelname:<7} {_one_line(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time (UTC), level, logger, message and the `extra` attributes."""

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
    """Escape control characters: names in `text` must not forge log lines or control the terminal."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in " | ".join(text.splitlines()))


def utc(record: logging.LogRecord) -> str:
    """Time of the record, as in 2026-06-08T06:00:00.123Z."""
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def configure(*, level: str, form: str) -> None:
    """Log records of `level` and above to standard error, in the format `form` (text or json)."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=_LEVELS[level], handlers=[handler], force=True)


class Once:
    """Logs each text once, prefixed with `subject`; `about` are extra attributes of each record."""

    def __init__(self, logger: logging.Logger, subject: str, **about: str) -> None:
        self._logger = logger
        self._subject = subject
        self._about = about
        self._logged: set[str] = set()

    def warn(self, text: str, *, reason: str = "") -> None:
        """Log `text` as a warning, unless it or another text with the same `reason` was already logged."""
        key = reason or text
        if key not in self._logged and len(self._logged) < MAX_TEXTS:
            self._logged.add(key)
            self._logger.warning("%s: %s", self._subject, text, extra=self._about)

    def forget(self) -> None:
        """Log the recovery, if any warning was logged; later warnings are logged again."""
        if self._logged:
            self._logged.clear()
            self._logger.info("%s: recovered", self._subject, extra=self._about)
