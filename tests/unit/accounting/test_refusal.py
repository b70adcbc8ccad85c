"""Events FailedCreate: what their messages say, and how many are kept. Messages as Kubernetes 1.36 sends them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputally.accounting.uncreated.refusals import FailedCreates, Refusal, refusal_of
from gputally.model.kube.kinds import Kind, Limit
from gputally.model.needs import QuotaState
from gputally.model.rules import Rules
from tests.core.manifests import us
from tests.core.refusals import exceeded, failed_create

RULES = Rules()
QUOTA = exceeded()


def read(message: str) -> Refusal:
    return refusal_of(failed_create(message), RULES, at_us=us(100))


@pytest.mark.parametrize(
    "message",
    [
        f'Error creating: pods "train-mlb9f" is forbidden: {QUOTA}',
        f'(combined from similar events): Error creating: pods "web-dj9gr" is forbidden: {QUOTA}',
        f'Create Pod sts-0 in StatefulSet sts failed error: pods "sts-0" is forbidden: {QUOTA}',
    ],
)
def test_the_quota_is_read_from_the_message_of_each_controller(message: str) -> None:
    found = read(message)

    assert found.quota == QuotaState(name="training", what="nvidia.com/gpu", hard=6, used=5, needed=8)
    assert found.text == QUOTA


def test_of_several_exceeded_resources_the_gpus_count() -> None:
    message = (
        "exceeded quota: all, requested: cpu=8,requests.nvidia.com/gpu=2, used: cpu=0,requests.nvidia.com/gpu=1, "
        "limited: cpu=4,requests.nvidia.com/gpu=2"
    )

    assert read(message).quota == QuotaState(name="all", what="nvidia.com/gpu", hard=2, used=1, needed=2)


def test_amounts_of_cpu_and_memory_have_their_units() -> None:
    cpu = read("exceeded quota: q, requested: limits.cpu=2500m, used: limits.cpu=0, limited: limits.cpu=1").quota
    memory = read("exceeded quota: q, requested: memory=1Gi, used: memory=0, limited: memory=512Mi").quota

    assert cpu == QuotaState(name="q", what="limits.cpu", hard=1000, used=0, needed=2500)
    assert memory == QuotaState(name="q", what="memory", hard=512 << 20, used=0, needed=1 << 30)


@pytest.mark.parametrize(
    "answer",
    [
        "ValidatingAdmissionPolicy 'owners' with binding 'owners' denied request: GPU pods need an owner label",
        "maximum cpu usage per Container is 4, but limit is 8",
        'error looking up service account ml/nope: serviceaccount "nope" not found',
        "failed quota: training: must specify requests.nvidia.com/gpu for: main",
        "exceeded quota: training, requested: x=-1, used: x=0, limited: x=zz",
        "exceeded quota: UPPER, requested: x=1, used: x=0, limited: x=1",
    ],
)
def test_every_other_answer_is_text_alone(answer: str) -> None:
    found = read(f'Error creating: pods "train-x" is forbidden: {answer}')

    assert (found.quota, found.text) == (None, answer)


def test_a_refusal_lasts_from_the_first_until_the_last_event() -> None:
    known = FailedCreates(RULES)
    known.seen(failed_create(QUOTA, at=70), at_us=us(100))
    known.seen(failed_create("other", at=60), at_us=us(100))
    known.seen(failed_create("last", at=90), at_us=us(100))

    found = known.of("ml", "uid-train")
    assert found
    assert (found.first_us, found.at_us, found.text) == (us(60), us(90), "last")


def test_an_event_from_the_future_is_as_of_its_observation() -> None:
    assert refusal_of(failed_create(QUOTA, at=9_000), RULES, at_us=us(100)).at_us == us(100)


@pytest.mark.parametrize(
    "named",
    [
        {"of_namespace": "theirs"},
        {"name": "../x"},
        {"uid": ""},
        {"uid": "\u00fcid"},
        {"uid": "x" * 1000},
        {"kind": "K" * 1000},
        {"apiVersion": "a/b/c"},
    ],
)
def test_an_event_of_an_object_that_cannot_be_there_says_nothing(named: dict[str, Any]) -> None:
    known = FailedCreates(RULES)

    assert known.seen(failed_create(QUOTA, **named), at_us=us(100)) is None
    assert len(known) == 0


def test_a_namespace_cannot_displace_the_refusals_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kind.FAILED_CREATES, "limit", Limit(None, 10))
    known = FailedCreates(RULES)
    known.seen(failed_create(QUOTA, namespace="quiet"), at_us=us(100))
    for number in range(50):
        known.seen(failed_create(QUOTA, name=f"job-{number}", namespace="loud"), at_us=us(100))

    assert len(known) == 10
    assert known.of("quiet", "uid-train")


@given(st.text(max_size=3000), st.sampled_from(["", "exceeded quota: q, requested: ", f"{QUOTA}, "]))
def test_no_message_breaks_anything(text: str, before: str) -> None:
    found = read(before + text)

    assert len(found.text) <= 400
    assert found.quota is None or 0 <= found.quota.needed <= 2**63
