"""Shared by all tests: recorded outputs, rewritten by `pytest --update-goldens`."""

import difflib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

RECORDED = Path(__file__).parent / "golden" / "recorded"

# A machine that builds or runs other tests meanwhile may stop a test for longer than hypothesis allows by default.
settings.register_profile("gputally", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gputally")


class Golden:
    """Outputs recorded in files and reviewed as diffs."""

    def __init__(self, folder: Path, *, update: bool) -> None:
        self._folder = folder
        self._update = update

    def check(self, name: str, actual: str | bytes) -> None:
        """Fail with a diff unless `actual` equals the file `name` byte for byte; an update writes the file."""
        path = self._folder / name
        content = actual.encode() if isinstance(actual, str) else actual
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        elif not path.exists():
            pytest.fail(f"{path} is missing; pytest --update-goldens records it", pytrace=False)
        elif path.read_bytes() != content:
            pytest.fail(_difference(path, content), pytrace=False)


def _difference(path: Path, content: bytes) -> str:
    recorded, now = (text.decode(errors="backslashreplace") for text in (path.read_bytes(), content))
    lines = difflib.unified_diff(
        recorded.splitlines(), now.splitlines(), str(path), "now; pytest --update-goldens accepts it", lineterm=""
    )
    return "\n".join(lines) or f"{path} differs only in line endings"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="record the current outputs as the expected ones")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(RECORDED, update=request.config.getoption("--update-goldens"))
