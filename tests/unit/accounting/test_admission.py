from gputally.accounting.admission import Admission
from gputally.model.rules import Limits

TWO = Limits(tenants=2)


def test_values_beyond_the_limit_are_exported_as_other_and_counted() -> None:
    admission = Admission(TWO)

    assert [admission.admit("tenant", value) for value in "abcda"] == ["a", "b", "other", "other", "a"]
    assert admission.refusals == {"tier": 0, "tenant": 2, "gpu_model": 0, "pool": 0}


def test_each_label_has_its_own_limit() -> None:
    admission = Admission(Limits(tenants=0))

    assert (admission.admit("tenant", "a"), admission.admit("tier", "a")) == ("other", "a")


def test_values_admitted_before_stay_admitted_under_a_lower_limit() -> None:
    admission = Admission(Limits(tenants=1), [("tenant", "a"), ("tenant", "b")])

    assert [admission.admit("tenant", value) for value in "abc"] == ["a", "b", "other"]


def test_only_what_is_newly_admitted_has_to_be_kept() -> None:
    admission = Admission(TWO, [("tenant", "a")])
    for value in "abca":
        admission.admit("tenant", value)

    assert list(admission.fresh) == [("tenant", "b")]
