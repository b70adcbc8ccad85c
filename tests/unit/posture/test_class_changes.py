"""What changed in the PriorityClasses, from their versions."""

from gputally.ledger.records import PriorityClassRecord, Window
from gputally.model.units import US_PER_SECOND
from gputally.posture.classes import class_changes


def version(
    from_s: int,
    to_s: int | None = None,
    *,
    value: int = 100,
    policy: str = "PreemptLowerPriority",
    default: bool = False,
) -> PriorityClassRecord:
    return PriorityClassRecord(
        name="low",
        from_us=from_s * US_PER_SECOND,
        to_us=None if to_s is None else to_s * US_PER_SECOND,
        value=value,
        preemption_policy=policy,
        is_default=default,
    )


def changes(*versions: PriorityClassRecord, start: int = 0, end: int = 1000) -> list[tuple[int, str]]:
    found = class_changes(versions, Window(start * US_PER_SECOND, end * US_PER_SECOND))
    return [(round(each.at.timestamp()), each.what) for each in found]


def test_a_class_from_before_has_not_changed() -> None:
    assert changes(version(1), start=10) == []


def test_a_new_class_is_created() -> None:
    assert changes(version(20, default=True)) == [
        (20, "created: value 100, preemptionPolicy PreemptLowerPriority, the globalDefault")
    ]


def test_a_new_version_says_what_differs() -> None:
    versions = version(1, 20), version(20, value=500, policy="Never", default=True)

    [(at, what)] = changes(*versions, start=10)
    assert at == 20
    assert what == (
        "value 500 instead of 100, preemptionPolicy Never instead of PreemptLowerPriority and now the globalDefault"
    )


def test_a_class_that_is_deleted_and_created_again_is_both() -> None:
    assert changes(version(1, 20), version(25), start=10) == [
        (20, "deleted"),
        (25, "created again, with the same value and preemptionPolicy"),
    ]


def test_a_default_may_be_withdrawn() -> None:
    assert changes(version(1, 20, default=True), version(20), start=10) == [(20, "no longer the globalDefault")]


def test_changes_after_the_window_are_left_out() -> None:
    assert changes(version(1, 2000), version(2000, value=500), start=10) == []
