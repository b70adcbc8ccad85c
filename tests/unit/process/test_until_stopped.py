"""Which error ends a command."""

from gputally.errors import AddressTaken, LedgerError
from gputally.process.command import single_error


def test_an_error_beside_a_bug_does_not_hide_it() -> None:
    bug = ZeroDivisionError()
    group = ExceptionGroup("", [LedgerError("full"), ExceptionGroup("", [bug])])

    assert single_error(group) is group


def test_of_several_errors_the_first_is_told() -> None:
    first = LedgerError("full")

    assert single_error(ExceptionGroup("", [ExceptionGroup("", [first]), AddressTaken("x")])) is first
