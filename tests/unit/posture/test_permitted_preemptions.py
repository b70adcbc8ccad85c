from gputally.output.posture import sections
from gputally.posture.classes import CatalogueClass
from gputally.posture.preemptions import permitted_preemptions
from tests.unit.posture.postures import posture_of_file


def a_class(name: str, value: int, policy: str = "PreemptLowerPriority") -> CatalogueClass:
    return CatalogueClass(
        name=name,
        value=value,
        tier=name,
        preemption_policy=policy,
        global_default=False,
        is_system=name.startswith("system-"),
        is_serving=False,
    )


def test_the_matrix_of_four_tiers_is_the_documented_posture() -> None:
    found = {each.name: (each.may_preempt, each.preempted_by) for each in posture_of_file("s2.yaml").preemptions}

    assert found == {
        "gpu-training": (("gpu-serving", "gpu-batch", "gpu-interactive"), ()),
        "gpu-serving": (("gpu-batch", "gpu-interactive"), ("gpu-training",)),
        "gpu-batch": (("gpu-interactive",), ("gpu-training", "gpu-serving")),
        "gpu-interactive": ((), ("gpu-training", "gpu-serving", "gpu-batch")),
    }


def test_the_posture_in_words() -> None:
    assert [each.sentence for each in posture_of_file("s2.yaml").preemptions] == [
        "gpu-training may preempt gpu-serving, gpu-batch and gpu-interactive; no class may preempt it.",
        "gpu-serving may preempt gpu-batch and gpu-interactive; gpu-training may preempt it.",
        "gpu-batch may preempt gpu-interactive; gpu-training and gpu-serving may preempt it.",
        "gpu-interactive preempts nobody (preemptionPolicy Never); all other classes may preempt it.",
    ]


def test_classes_of_the_same_value_do_not_preempt_each_other() -> None:
    assert [each.may_preempt for each in permitted_preemptions([a_class("a", 5), a_class("b", 5)])] == [(), ()]


def test_a_high_class_with_never_preempts_nobody() -> None:
    [high, low] = permitted_preemptions([a_class("high", 9, "Never"), a_class("low", 5)])

    assert high.may_preempt == low.preempted_by == ()
    assert low.sentence == "low preempts nobody; no class may preempt it."


def test_a_policy_that_does_not_exist_preempts_nobody_and_says_so() -> None:
    [urgent, low] = permitted_preemptions([a_class("urgent", 9, "PreemptHigherPriority"), a_class("low", 5)])

    assert (urgent.may_preempt, urgent.policy_exists) == ((), False)
    assert low.preempted_by == ()
    assert urgent.sentence.startswith("urgent preempts nobody (the API server refuses preemptionPolicy PreemptHigher")


def test_the_matrix_of_a_policy_that_does_not_exist_says_refused() -> None:
    matrix = next(each for each in sections(posture_of_file("s4.yaml")) if each.title == "Who may preempt whom")

    assert matrix.rows == (
        ("urgent", "", "refused", "refused"),
        ("ml-training", "no", "", "yes"),
        ("user-facing", "no", "no", ""),
    )


def test_system_classes_are_left_out() -> None:
    [only] = permitted_preemptions([a_class("system-node-critical", 2_000_001_000), a_class("a", 5)])

    assert (only.name, only.preempted_by) == ("a", ())
