"""Passwords are checked one after the other, and what was right once costs nothing."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from gputally.web import authentication as module
from gputally.web.authentication import MOST_SOURCES, Passwords, TooMany
from tests.fakes.policies import hashed

HASHES = {"anna": hashed("right"), "bert": hashed("his")}


class Checks:
    """What bcrypt is asked, each time for a moment that the test ends."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fits = module._matches

    def __call__(self, password: str, hash_: str) -> bool:
        self.asked.append((password, hash_))
        time.sleep(0.02)
        return self.fits(password, hash_)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    checks = Checks()
    monkeypatch.setattr(module, "_matches", checks)
    return checks


@pytest.fixture
async def passwords(checks: Checks) -> AsyncIterator[Passwords]:
    assert not checks.asked
    passwords = Passwords()
    yield passwords
    passwords.close()


async def test_what_was_right_is_checked_once_until_the_hash_changes(passwords: Passwords, checks: Checks) -> None:
    for _ in range(3):
        assert await passwords.verify("anna", "right", HASHES, source="a")
    assert len(checks.asked) == 1

    assert not await passwords.verify("anna", "right", {"anna": hashed("new")}, source="a")


async def test_what_was_wrong_is_checked_each_time(passwords: Passwords, checks: Checks) -> None:
    for _ in range(3):
        assert not await passwords.verify("anna", "wrong", HASHES, source="a")
    assert len(checks.asked) == 3


async def test_a_user_who_does_not_exist_costs_as_much_and_is_never_right(passwords: Passwords, checks: Checks) -> None:
    costly = {"anna": hashed("right", cost=5), "bert": hashed("his")}

    assert not await passwords.verify("nobody", "right", costly, source="a")
    assert not await passwords.verify("nobody", "right", costly, source="a")

    assert checks.asked == [("right", costly["anna"])] * 2


async def test_the_same_password_at_the_same_moment_is_checked_once(passwords: Passwords, checks: Checks) -> None:
    found = await asyncio.gather(*(passwords.verify("anna", "right", HASHES, source=str(n)) for n in range(50)))

    assert (set(found), len(checks.asked)) == ({True}, 1)


async def test_a_wrong_password_from_the_same_address_does_not_displace_the_right_one(passwords: Passwords) -> None:
    """Two scrapers behind one address may scrape at the same moments."""
    found = await asyncio.gather(
        passwords.verify("anna", "guess", HASHES, source="a"), passwords.verify("anna", "right", HASHES, source="a")
    )

    assert list(found) == [False, True]


async def test_an_address_has_two_passwords_checked_at_a_time(passwords: Passwords, checks: Checks) -> None:
    found = await asyncio.gather(
        *(passwords.verify("anna", f"guess {n}", HASHES, source="a") for n in range(10)),
        passwords.verify("anna", "right", HASHES, source="b"),
        return_exceptions=True,
    )

    assert found[:2] == [False, False]
    assert [type(each) for each in found[2:-1]] == [TooMany] * 8
    assert (found[-1], len(checks.asked)) == (True, 3)


async def test_so_many_addresses_may_wait_and_no_more(passwords: Passwords, checks: Checks) -> None:
    found = await asyncio.gather(
        *(passwords.verify("anna", "wrong" + str(n), HASHES, source=str(n)) for n in range(MOST_SOURCES + 5)),
        return_exceptions=True,
    )

    assert found.count(False) == len(checks.asked) == MOST_SOURCES
    assert not await passwords.verify("anna", "wrong", HASHES, source="0"), "their places are free again"
