"""The contents of the image are pinned, and the pins satisfy pyproject.toml."""

import re
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from hack.lock import LEFT_OUT, wanted

LOCKS = pytest.mark.parametrize("lock", wanted(), ids=lambda lock: lock.name)
RENEW = "run `python -m hack.lock`"


@LOCKS
def test_each_requirement_is_locked_within_its_range(lock: Path) -> None:
    pins = pinned(lock)

    for each in map(Requirement, wanted()[lock]):
        name = canonicalize_name(each.name)
        assert name in pins, f"{name} is not locked; {RENEW}"
        assert each.specifier.contains(pins[name]), f"{name} {pins[name]} is not {each.specifier}; {RENEW}"


def test_only_needed_packages_are_locked() -> None:
    lock, *_ = wanted()

    assert set(pinned(lock)) == needed(wanted()[lock]), RENEW


@LOCKS
def test_every_pin_has_one_hash_or_one_per_architecture(lock: Path) -> None:
    hashes = [len(re.findall("--hash=sha256:[0-9a-f]{64}", entry)) for entry in entries(lock)]

    assert set(hashes) <= {1, 2}


def test_packages_for_interactive_use_are_left_out() -> None:
    lock, *_ = wanted()

    assert LEFT_OUT.isdisjoint(pinned(lock))


def entries(lock: Path) -> list[str]:
    """One joined line per package."""
    text = lock.read_text().replace("\\\n", "")
    return [line for line in text.splitlines() if not line.startswith("#")]


def pinned(lock: Path) -> dict[str, Version]:
    pairs = (entry.split()[0].split("==") for entry in entries(lock))
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def needed(requirements: Iterable[str]) -> set[str]:
    """The packages and their transitive requirements, according to the installed versions."""
    found = set[str]()
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        each = waiting.pop()
        name = canonicalize_name(each.name)
        if name not in found and (each.marker is None or each.marker.evaluate({"extra": ""})):
            found.add(name)
            waiting += map(Requirement, requires(name) or [])
    return found
