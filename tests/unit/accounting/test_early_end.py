"""Jobs that preemptions ended: complete with a preempted pod as a success, or failed only because of preemptions."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import msgspec
import pytest

from gputally.accounting.totals.total import Total
from gputally.model.kube.kinds import Kind
from gputally.model.kube.workloads import Job
from gputally.model.observation import Upserted
from tests.core.manifests import NodeForm, PodForm, instant, us
from tests.core.replay import Replay

NODE = NodeForm(name="n1", capacity={"nvidia.com/gpu": 8})
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-train", "controller": True}
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
WAITS: Mapping[str, Any] = {"podReplacementPolicy": "Failed"}
END = 200
"""When the Job ends, unless stated."""


def policy(*rules: Mapping[str, Any]) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": rules}}


def rule(action: str, **matches: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"action": action, **matches}


def on_codes(*values: int, operator: str = "In") -> dict[str, Any]:
    return {"onExitCodes": {"operator": operator, "values": values}}


def job(*conditions: str, reason: str = "", at: int = END, spec: Mapping[str, Any], **status: int) -> Job:
    found = [
        {"type": each, "status": "True", "reason": reason, "lastTransitionTime": instant(at)} for each in conditions
    ]
    meta = {"name": "train", "namespace": "ml", "uid": "job-train"}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": {"conditions": found, **status}}, Job)


def pod(name: str) -> PodForm:
    return PodForm(name=name, created=10, node="n1", scheduled=10, started=10, tier="gold", owners=(OWNER,))


def ended(name: str, at: int, *, code: int = 0) -> PodForm:
    """A pod that ended by itself."""
    phase = "Failed" if code else "Succeeded"
    return replace(pod(name), phase=phase, finished=at, exit_code=code, version=2)


def preempted(name: str, at: int, *, code: int) -> PodForm:
    """A pod that was preempted and ended three seconds later."""
    return replace(ended(name, at + 3, code=code), deleted=at, marked=at)


def stopped(name: str, at: int) -> PodForm:
    """A pod that somebody deleted."""
    return replace(ended(name, at + 3, code=143), deleted=at)


class Run:
    """A Job whose pods a, b, ... come and go."""

    def __init__(self, **spec: Any) -> None:  # noqa: ANN401 - any JSON
        self.replay = Replay()
        self.replay.see(NODE, at=1)
        self.spec = spec
        self.see(job(spec=spec), at=5)

    def see(self, found: Job, *, at: int) -> None:
        self.replay.apply(Upserted(kind=Kind.JOBS, object=found, at_us=us(at), since_us=us(at)))

    def pods(self, *forms: PodForm, gone: bool = True) -> None:
        """All of them are seen before they end; those that are `gone` are deleted before the Job ends."""
        for form in forms:
            self.replay.see(pod(form.name), at=10)
        for form in sorted(forms, key=lambda form: form.finished or 0):
            self.replay.see(form, at=form.finished or 0)
            if gone:
                self.replay.lose(form, at=(form.finished or 0) + 1)

    def ends(self, kind: str, reason: str = "", *, at: int = END, **status: int) -> str:
        """The outcome of the Job after it ended; `status` has the numbers of its pods."""
        interim = "FailureTarget" if kind == "Failed" else "SuccessCriteriaMet"
        self.see(job(interim, kind, reason=reason, at=at, spec=self.spec, **status), at=at)
        return self.outcome()

    def completes(self, succeeded: int, failed: int = 0) -> str:
        return self.ends("Complete", "CompletionsReached", succeeded=succeeded, failed=failed)

    def gives_up(self, failed: int, *, at: int = END) -> str:
        return self.ends("Failed", "BackoffLimitExceeded", failed=failed, at=at)

    def outcome(self) -> str:
        """Its time counts under one outcome, that of its record."""
        self.replay.flush()
        [(_, _, outcome)] = self.replay.gpu_seconds(10_000, Total.JOB)
        return outcome

    def counted(self) -> Mapping[tuple[str, ...], int]:
        return self.replay.true(Total.ENDED_EARLY, 10_000)


@pytest.mark.parametrize("gone", [True, False])
def test_a_job_that_counts_a_preempted_pod_as_a_success_completed_early(gone: bool) -> None:  # noqa: FBT001 - a case
    run = Run(**WAITS)
    run.pods(ended("a", 50), preempted("b", 100, code=0), gone=gone)

    assert run.completes(2) == "completed_early"
    assert run.counted() == {("gold", "ml", "completed_early"): 1}


def test_a_job_that_replaced_its_preempted_pods_succeeded() -> None:
    run = Run()
    run.pods(preempted("a", 50, code=0), preempted("b", 60, code=143), ended("c", 150))

    assert run.completes(1, failed=2) == "succeeded"
    assert run.counted() == {}


def test_a_pod_that_exits_before_its_job_looks_is_a_success_for_any_job() -> None:
    run = Run()
    run.pods(ended("a", 50), preempted("b", 100, code=0))

    assert run.completes(2) == "completed_early"


def test_a_preempted_pod_that_fails_completes_no_job() -> None:
    run = Run(**WAITS)
    run.pods(preempted("a", 50, code=3), ended("b", 100))

    assert run.completes(1, failed=1) == "succeeded"


def test_a_deleted_pod_that_exits_with_0_is_a_success_as_its_owner_wanted() -> None:
    run = Run(**WAITS)
    run.pods(replace(ended("a", 53), deleted=50))

    assert run.completes(1) == "succeeded"


def test_a_job_whose_retries_preemptions_used_up_failed_early() -> None:
    run = Run(backoffLimit=1)
    run.pods(preempted("a", 50, code=143), preempted("b", 100, code=0))

    assert run.gives_up(2) == "failed_early"
    assert run.counted() == {("gold", "ml", "failed_early"): 1}


@pytest.mark.parametrize(("own", "outcome"), [(6, "failed_early"), (7, "failed")])
def test_a_job_that_fails_often_enough_by_itself_failed(own: int, outcome: str) -> None:
    run = Run()  # the default limit is 6
    run.pods(*(ended(f"own-{i}", 50 + i, code=1) for i in range(own)), preempted("p", 90, code=143))

    assert run.gives_up(own + 1) == outcome


def test_preempted_pods_that_the_policy_ignores_are_no_failures() -> None:
    run = Run(backoffLimit=0, **policy(rule("Ignore", **DISRUPTED)))
    run.pods(preempted("a", 50, code=143), ended("b", 100, code=1))

    assert run.gives_up(1) == "failed"


def test_the_first_rule_that_matches_decides_whether_a_preempted_pod_counts() -> None:
    run = Run(backoffLimit=0, **policy(rule("Count", **on_codes(7)), rule("Ignore", **DISRUPTED)))
    run.pods(preempted("a", 50, code=7), preempted("b", 60, code=143))

    assert run.gives_up(1) == "failed_early"


@pytest.mark.parametrize(
    ("rules", "outcome"),
    [
        ((rule("FailJob", **on_codes(143)),), "failed_early"),
        ((rule("FailJob", **on_codes(0, 1, operator="NotIn")),), "failed_early"),
        ((rule("FailJob", **DISRUPTED),), "failed_early"),
        ((rule("FailJob", **on_codes(42)), rule("Ignore", **DISRUPTED)), "failed"),
        ((rule("Ignore", **DISRUPTED), rule("FailJob", **on_codes(143))), "failed"),
    ],
)
def test_a_job_that_a_rule_fails_failed_early_if_the_rule_matches_a_preempted_pod(
    rules: tuple[Mapping[str, Any], ...], outcome: str
) -> None:
    run = Run(**policy(*rules))
    run.pods(preempted("a", 50, code=143))

    assert run.ends("Failed", "PodFailurePolicy", failed=1) == outcome


def test_a_job_that_ran_too_long_failed_for_that_reason() -> None:
    run = Run(backoffLimit=0)
    run.pods(preempted("a", 50, code=143))

    assert run.ends("Failed", "DeadlineExceeded", failed=1) == "failed"


@pytest.mark.parametrize("gone", [True, False])
def test_the_pods_that_a_failing_job_stops_are_no_failures_of_their_own(gone: bool) -> None:  # noqa: FBT001 - a case
    run = Run(backoffLimit=1)
    run.pods(ended("own", 40, code=1), preempted("a", END - 2, code=143), gone=gone)
    run.pods(stopped("b", END), stopped("c", END + 1), gone=gone)

    assert run.gives_up(4) == "failed_early"


def test_pods_that_others_deleted_before_are_failures() -> None:
    run = Run(backoffLimit=1)
    run.pods(stopped("a", END - 1), stopped("b", END - 90), preempted("c", END - 2, code=143))

    assert run.gives_up(3) == "failed"


def test_a_failing_job_stops_pods_that_wait_for_gpus_too() -> None:
    run = Run(backoffLimit=0)
    run.pods(preempted("a", END - 2, code=143))
    waiting = PodForm(name="b", created=50, owners=(OWNER,))
    run.replay.see(waiting, at=50)
    run.replay.lose(replace(waiting, deleted=END, grace=0), at=END)

    assert run.gives_up(2) == "failed_early"


def test_a_job_that_failed_by_restarts_of_its_containers_failed() -> None:
    """Kubernetes counts the restarts of existing pods too, which are no failed pods."""
    run = Run()
    run.pods(preempted("a", 50, code=143), stopped("b", END))

    assert run.gives_up(2) == "failed"


def test_news_of_a_preemption_after_the_end_of_the_job_corrects_the_outcome() -> None:
    run = Run(backoffLimit=0)
    unmarked = replace(preempted("a", 50, code=143), marked=None)
    run.pods(unmarked, gone=False)
    assert run.gives_up(1) == "failed"
    assert run.counted() == {}

    run.replay.see(replace(unmarked, marked=50, version=3), at=END + 1)
    assert run.outcome() == "failed_early"
    assert run.counted() == {("gold", "ml", "failed_early"): 1}
    assert run.replay.gpu_seconds(10_000, Total.JOB) == {("gold", "ml", "failed_early"): Fraction(43)}


def test_restarts_neither_forget_a_preempted_pod_nor_count_it_twice() -> None:
    run = Run(backoffLimit=1)
    run.pods(ended("own", 40, code=1), preempted("a", 50, code=143))
    run.replay.flush()
    run.replay.restart()
    run.pods(preempted("b", 100, code=143), gone=False)
    run.replay.flush()
    run.replay.restart()

    assert run.gives_up(3) == "failed_early"
    run.replay.restart()
    run.see(job("FailureTarget", "Failed", reason="BackoffLimitExceeded", spec=run.spec, failed=3), at=300)
    assert run.outcome() == "failed_early"
    assert run.counted() == {("gold", "ml", "failed_early"): 1}


def test_one_preemption_of_a_pod_does_not_make_two_by_many_updates() -> None:
    run = Run(backoffLimit=1)
    run.pods(ended("own", 30, code=1), ended("too", 40, code=1))
    run.pods(preempted("a", 50, code=143), gone=False)
    for version in (3, 4, 5):
        run.replay.see(replace(preempted("a", 50, code=143), version=version), at=60 + version)
    run.replay.lose(preempted("a", 50, code=143), at=70)

    assert run.gives_up(3) == "failed"


def test_the_ledger_gets_the_outcome_with_the_reason_of_the_job() -> None:
    run = Run(backoffLimit=0)
    run.pods(preempted("a", 50, code=143))
    run.replay.flush()
    run.see(job("Failed", reason="BackoffLimitExceeded", spec=run.spec, failed=1), at=END)

    stored = run.replay.fleet.drain().jobs["job-train"]
    assert (stored.outcome.value, stored.reason) == ("failed_early", "BackoffLimitExceeded")


def test_a_job_with_pods_of_two_tenants_counts_once_for_the_one_with_most_time() -> None:
    run = Run(backoffLimit=1)
    silver = replace(preempted("a", 150, code=143), tier="silver")
    run.replay.see(replace(pod("a"), tier="silver"), at=10)
    run.replay.see(silver, at=153)
    run.pods(preempted("b", 50, code=143))
    run.see(job("FailureTarget", "Failed", reason="BackoffLimitExceeded", spec=run.spec, failed=2), at=END)
    run.replay.flush()

    assert run.counted() == {("silver", "ml", "failed_early"): 1}
