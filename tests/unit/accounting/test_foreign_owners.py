"""A pod cannot join a Job of another namespace, whatever UID its author puts into the owner reference."""

from dataclasses import replace
from fractions import Fraction

from gputally.accounting.totals.total import Total
from tests.unit.accounting.test_early_end import END, WAITS, Run, ended, job, pod, preempted


def test_a_preempted_pod_of_another_namespace_changes_no_outcome_and_no_time() -> None:
    run = Run(**WAITS)
    run.replay.see_namespace({"metadata": {"name": "evil", "uid": "uid-evil"}}, at=6)
    run.pods(ended("a", 100), gone=False)
    forged = replace(preempted("x", 50, code=0), namespace="evil")
    run.replay.see(replace(pod("x"), namespace="evil"), at=20)
    run.replay.see(forged, at=53)
    run.replay.lose(forged, at=54)

    run.see(job("Complete", reason="CompletionsReached", spec=run.spec, succeeded=1), at=END)
    run.replay.flush()

    assert run.replay.gpu_seconds(10_000, Total.JOB) == {
        ("gold", "ml", "succeeded"): Fraction(90),
        ("gold", "evil", "preempted"): Fraction(43),
    }
    assert run.counted() == {}
