"""What the name and description of a class claim about preemption, beside what its value and policy do."""

from pathlib import Path

import pytest

from gputally.model.rules import Rules
from gputally.posture.document import posture_of
from tests.unit.posture.postures import Json, a_class, found_in, read

NEVER: Json = {"preemptionPolicy": "Never"}


@pytest.mark.parametrize(
    "text",
    [
        "Must not be preempted.",
        "Long training. Never preempted.",
        "non-preemptible",
        "Nonpreemptable reservations",
        "These pods can't be preempted",
        "is not preemptible",
        "unpreemptible",
        "protected from preemption",
        "Do not preempt: customers use it",
        "Please never preempt these pods",
        "should not ever be evicted",
        "must not be preempted by other teams",
        "must not be preempted by high",
    ],
)
def test_a_class_that_shall_not_be_preempted_but_may_be_is_reported(tmp_path: Path, text: str) -> None:
    classes = (a_class("high", 1000), a_class("kept", 500, description=text, **NEVER), a_class("low", 100))

    assert found_in(tmp_path, *classes) == [("meant-not-to-be-preempted", "PriorityClass kept")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "preempts nobody",
        "Waits without preempting anyone",
        "May be preempted",
        "not to be confused with preemptible classes",
        "must not be preempted by low",
        "must not be preempted by lower classes",
    ],
)
def test_a_class_that_may_be_preempted_as_described_is_not_reported(tmp_path: Path, text: str) -> None:
    classes = (a_class("high", 1000), a_class("kept", 500, description=text, **NEVER), a_class("low", 100))

    assert found_in(tmp_path, *classes) == []


@pytest.mark.parametrize("policy", [{}, NEVER])
@pytest.mark.parametrize(("value", "above"), [(900, "top"), (500, "top and middle"), (50, "top, middle and low")])
def test_neither_policy_protects_a_class_at_any_level(tmp_path: Path, policy: Json, value: int, above: str) -> None:
    kept = a_class("non-preemptible", value, **policy)
    found = read(tmp_path, a_class("top", 1000), a_class("middle", 600), kept, a_class("low", 100))

    [finding] = posture_of(found, Rules()).findings

    assert finding.check == "meant-not-to-be-preempted"
    assert finding.what == f"its name says 'non-preemptible', but {above} may preempt it"
    assert finding.why == "preemptionPolicy: Never only stops a class from preempting others; only a value protects it"
    assert finding.remedy == "set a value of at least 1000: pods of the same priority do not preempt each other"


def test_never_in_the_highest_class_that_shall_not_be_preempted_costs_it_its_own_preemptions(tmp_path: Path) -> None:
    kept = a_class("kept", 1000, description="must not be preempted", **NEVER)

    assert found_in(tmp_path, kept, a_class("low", 100)) == [("never-is-no-protection", "PriorityClass kept")]
    assert found_in(tmp_path, kept) == []
    assert found_in(tmp_path, kept | {"preemptionPolicy": "PreemptLowerPriority"}, a_class("low", 100)) == []
    both = kept | {"description": "must not be preempted, and preempts nobody"}
    assert found_in(tmp_path, both, a_class("low", 100)) == []


@pytest.mark.parametrize("text", ["preempts nobody", "never evicts other pods", "non-pre-empting", "preempts no pods"])
def test_a_class_that_says_it_preempts_nobody_in_other_words_is_meant_not_to(tmp_path: Path, text: str) -> None:
    found = found_in(tmp_path, a_class("quiet", 1000, description=text), a_class("low", 100))

    assert found == [("meant-not-to-preempt", "PriorityClass quiet")]


FOUR = (("gpu-training", 1000), ("gpu-serving", 800), ("gpu-batch", 400), ("gpu-interactive", 200))


def s2(text: str, *, of: str = "gpu-training", policy: str = "PreemptLowerPriority") -> list[Json]:
    fields = {of: {"description": text, "preemptionPolicy": policy}}
    accept = {
        "metadata": {"name": "gpu-serving", "annotations": {"gputally.io/posture-accept": "serving-below-training"}}
    }
    classes = [a_class(name, value, **fields.get(name, {})) for name, value in FOUR]
    return [each | accept if each["metadata"]["name"] == "gpu-serving" else each for each in classes]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("May preempt batch", "gpu-serving and gpu-interactive"),
        ("Training runs. Preempts gpu-batch and gpu-interactive.", "gpu-serving"),
        ("preempts only notebooks and interactive pods", "gpu-serving and gpu-batch"),
        ("Can evict batch jobs, but not serving", "gpu-serving and gpu-interactive"),
        ("preempts inference; waits for nothing", "gpu-batch and gpu-interactive"),
        ("Used like gpu-serving, may preempt batch", "gpu-serving and gpu-interactive"),
        ("Training and gpu-serving preempt batch", "gpu-serving and gpu-interactive"),
    ],
)
def test_a_description_that_names_only_some_of_the_victims_is_reported(tmp_path: Path, text: str, missing: str) -> None:
    [finding] = posture_of(read(tmp_path, *s2(text)), Rules()).findings

    assert finding.check == "understated-preemption"
    assert finding.what.endswith(f"but it may also preempt {missing}")


@pytest.mark.parametrize(
    "text",
    [
        "Large training runs",
        "May preempt serving, batch and interactive pods",
        "Preempts all others",
        "Preempts lower classes, such as batch",
        "May preempt batch and everything below serving",
        "Preempted by nothing; batch jobs are others",
        "may preempt the usual suspects",
        "Long runs; inference preempts batch",
        "gpu-serving jobs may also preempt interactive pods. They must not be preempted",
        "Weekend work: gpu-batch and serving never preempt interactive",
    ],
)
def test_a_description_that_names_all_victims_or_none_is_not_reported(tmp_path: Path, text: str) -> None:
    assert found_in(tmp_path, *s2(text)) == []


def test_a_class_that_preempts_nobody_understates_nothing(tmp_path: Path) -> None:
    assert found_in(tmp_path, *s2("may preempt interactive", policy="Never")) == []
    assert found_in(tmp_path, *s2("may preempt interactive", of="gpu-batch")) == []


def test_a_family_of_classes_is_named_by_the_word_that_they_share(tmp_path: Path) -> None:
    family = [a_class(f"training-{name}", value) for name, value in (("high", 300), ("standard", 200), ("low", 100))]
    every = a_class("reserved", 1000, description="may preempt training")
    one = a_class("reserved", 1000, description="may preempt training-low")

    assert found_in(tmp_path, every, *family) == []
    assert found_in(tmp_path, one, *family) == [("understated-preemption", "PriorityClass reserved")]
