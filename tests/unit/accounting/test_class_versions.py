"""PriorityClasses over time."""

from typing import TYPE_CHECKING

from gputally.accounting.changes import Changes
from gputally.model.kube.kinds import Kind
from tests.core.manifests import us
from tests.core.policies import priority_class
from tests.core.replay import Replay

if TYPE_CHECKING:
    from gputally.model.kube.policy import ClassVersion

KIND = Kind.PRIORITY_CLASSES


class Written:
    """The versions that a ledger has, as short tuples with times in seconds."""

    def __init__(self) -> None:
        self.replay = Replay()
        self._rows: dict[tuple[str, int], ClassVersion] = {}

    def flush(self) -> None:
        write = self.replay.memory.write

        def keep(changes: Changes) -> None:
            self._rows |= changes.priority_classes
            write(changes)

        self.replay.memory.write = keep  # type: ignore[method-assign]  # a memory keeps no classes
        self.replay.flush()
        self.replay.memory.write = write  # type: ignore[method-assign]  # as above

    def rows(self) -> list[tuple[str, int, float, float | None]]:
        self.flush()
        return [
            (each.name, each.value, seconds(each.from_us), None if each.to_us is None else seconds(each.to_us))
            for each in self._rows.values()
        ]

    def defaults(self) -> list[tuple[str, bool]]:
        self.flush()
        return [(each.name, each.is_default) for each in self._rows.values()]


def seconds(time_us: int) -> float:
    return (time_us - us(0)) / 1_000_000


def test_a_class_holds_from_its_creation_on() -> None:
    written = Written()
    written.replay.see_object(KIND, priority_class("low", 100, created=3), at=10)

    assert written.rows() == [("low", 100, 3, None)]


def test_another_value_is_a_new_object_and_a_new_version() -> None:
    written = Written()
    written.replay.see_object(KIND, priority_class("low", 100, uid="first"), at=10)
    written.replay.lose_object(KIND, priority_class("low", 100, uid="first"), at=20)
    written.replay.see_object(KIND, priority_class("low", 500, uid="second", created=21), at=21.3)

    assert written.rows() == [("low", 100, 0, 20), ("low", 500, 21, None)]


def test_two_classes_of_one_name_and_one_second_are_two_versions() -> None:
    written = Written()
    written.replay.see_object(KIND, priority_class("low", 100, uid="first", created=20), at=20.1)
    written.replay.lose_object(KIND, priority_class("low", 100, uid="first"), at=20.4)
    written.replay.see_object(KIND, priority_class("low", 500, uid="second", created=20), at=20.6)

    assert written.rows() == [("low", 100, 20, 20.4), ("low", 500, 20.4, None)]


def test_a_new_object_ends_the_old_one_whose_deletion_was_missed() -> None:
    written = Written()
    written.replay.see_object(KIND, priority_class("low", 100, uid="first"), at=10)
    written.replay.see_object(KIND, priority_class("low", 500, uid="second", created=21), at=30)

    assert written.rows() == [("low", 100, 0, 21), ("low", 500, 21, None)]


def test_the_default_may_change_in_the_same_object() -> None:
    written = Written()
    written.replay.see_object(KIND, priority_class("low", 100), at=10)
    written.replay.see_object(KIND, priority_class("low", 100, is_default=True), at=20)

    assert written.defaults() == [("low", False), ("low", True)]
    assert [row[2:] for row in written.rows()] == [(0, 20), (20, None)]


def test_the_same_class_again_writes_nothing() -> None:
    written = Written()
    written.replay.see_object(KIND, priority_class("low", 100), at=10)
    written.flush()
    written.replay.see_object(KIND, priority_class("low", 100), at=20)

    assert written.replay.fleet.drain().priority_classes == {}


def test_a_class_that_was_deleted_while_no_process_ran_ends_with_the_next_list() -> None:
    written = Written()
    written.replay.see_object(KIND, priority_class("low", 100), at=10)
    written.flush()
    written.replay.restart()
    written.replay.relist_objects(KIND, priority_class("high", 200, created=50), at=60)

    assert written.rows() == [("low", 100, 0, 60), ("high", 200, 50, None)]


def test_a_class_without_a_policy_preempts() -> None:
    replay = Replay()
    replay.see_object(KIND, priority_class("low", 100), at=10)
    replay.see_object(KIND, priority_class("shy", 100, policy="Never"), at=10)

    known = replay.fleet.policy.classes.known
    assert {name: each.preemption_policy for name, each in known.items()} == {
        "low": "PreemptLowerPriority",
        "shy": "Never",
    }


def test_the_highest_classes_are_exported_and_those_of_the_system_are_not() -> None:
    replay = Replay()
    replay.see_object(KIND, priority_class("system-node-critical", 2_000_001_000), at=10)
    for number in range(120):
        replay.see_object(KIND, priority_class(f"c{number}", number), at=10)

    exported = replay.scrape(at=20).priority_classes
    assert [each.name for _, each in exported] == [f"c{number}" for number in range(119, 19, -1)]
