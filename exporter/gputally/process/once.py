"""Log repeated warnings only once, until recovery."""

import logging
from typing import Final

MAX_TEXTS: Final = 100
"""Maximum number of different texts until `forget`; further texts are not logged, to limit texts that vary."""


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
