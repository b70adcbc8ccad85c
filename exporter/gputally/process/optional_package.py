"""Python packages that only some commands need, and that may not be installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from gputally.errors import ConfigError, Problem


@contextmanager
def needing(remedy: str) -> Iterator[None]:
    """Import an optional dependency. Raises: ConfigError with the package and the `remedy`."""
    try:
        yield
    except ModuleNotFoundError as error:
        problem = Problem("", f"Python package {error.name}", f"is not installed; {remedy}")
        raise ConfigError([problem]) from None
