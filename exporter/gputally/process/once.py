"""Log lines that are said once, however often their reason comes back."""

import logging
from typing import Final

MOST_TEXTS: Final = 100
"""Texts remembered; past them nothing more is said until `forget`, for a text may hold what varies without end."""


class Once:
    """Says each text once on `logger`, after its `subject`; the attributes `about` go with every record."""

    def __init__(self, logger: logging.Logger, subject: str, **about: str) -> None:
        self._logger = logger
        self._subject = subject
        self._about = about
        self._said: set[str] = set()

    def warn(self, text: str, *, reason: str = "") -> None:
        """Log `text` as a warning unless it was, or another text for the same `reason`."""
        key = reason or text
        if key not in self._said and len(self._said) < MOST_TEXTS:
            self._said.add(key)
            self._logger.warning("%s: %s", self._subject, text, extra=self._about)

    def forget(self) -> None:
        """The reasons are gone: should they return, they are said again."""
        if self._said:
            self._said.clear()
            self._logger.info("%s: recovered", self._subject, extra=self._about)
