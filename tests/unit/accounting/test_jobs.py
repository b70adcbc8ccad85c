"""Jobs of batch/v1 and how they end."""

from typing import Any

import msgspec
import pytest

from gputally.accounting.jobs.jobs import Jobs
from gputally.accounting.jobs.record import JobRecord, is_gpu_job, job_uid
from gputally.accounting.totals.totals import Totals
from gputally.model.allocation import Outcome
from gputally.model.kube.meta import OwnerReference
from gputally.model.kube.workloads import Job
from gputally.model.rules import Rules
from tests.core.manifests import PodForm, instant, us


def job(name: str = "train", *, gpus: int = 1, ended: tuple[str, str, int] | None = None, status: str = "True") -> Job:
    """A Job; `ended` is the type, reason and time of its last condition."""
    conditions = [{"type": "Suspended", "status": "False", "lastTransitionTime": instant(1)}]
    if ended:
        kind, reason, at = ended
        conditions.append({"type": kind, "status": status, "reason": reason, "lastTransitionTime": instant(at)})
    manifest: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "ml", "uid": f"job-{name}", "creationTimestamp": instant(1)},
        "spec": {"template": {"spec": PodForm(gpus=gpus).manifest()["spec"]}},
        "status": {"conditions": conditions},
    }
    return msgspec.convert(manifest, Job, strict=False)


def seen(*forms: Job) -> Jobs:
    """The part after these Jobs were observed, one each second from 30 s on."""
    part = Jobs(Totals(accounting_start_us=us(0)))
    for at, form in enumerate(forms, 30):
        part.seen(form, at_us=us(at))
    return part


def record(
    outcome: Outcome, reason: str = "", ended: int | None = None, *, failing: int | None = None, deleted: bool = False
) -> JobRecord:
    return JobRecord(
        uid="job-train",
        namespace="ml",
        name="train",
        created_us=us(1),
        outcome=outcome,
        reason=reason,
        ended_us=None if ended is None else us(ended),
        failing_us=None if failing is None else us(failing),
        counted=outcome is not Outcome.RUNNING,
        deleted=deleted,
    )


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (job(), record(Outcome.RUNNING)),
        (job(ended=("Complete", "CompletionsReached", 20)), record(Outcome.SUCCEEDED, "CompletionsReached", 20)),
        (
            job(ended=("Failed", "BackoffLimitExceeded", 20)),
            record(Outcome.FAILED, "BackoffLimitExceeded", 20, failing=20),
        ),
        (job(ended=("Failed", "BackoffLimitExceeded", 20), status="False"), record(Outcome.RUNNING)),
        (job(ended=("FailureTarget", "PodFailurePolicy", 20)), record(Outcome.RUNNING, failing=20)),
        (job(ended=("Complete", "CompletionsReached", 99)), record(Outcome.SUCCEEDED, "CompletionsReached", 30)),
    ],
)
def test_the_outcome_of_a_job_is_its_condition(form: Job, expected: JobRecord) -> None:
    """The last one: the server's clock is ahead, so the job ended when that was observed."""
    part = seen(form)

    assert part.drain_changed() == {"job-train": expected}
    assert part.drain() == {"job-train": expected}
    assert (part.drain_changed(), part.drain()) == ({}, {})


def test_a_job_that_is_deleted_while_it_runs_was_deleted() -> None:
    part = seen(job())
    part.gone("job-train", at_us=us(40))

    assert part.drain_changed() == {"job-train": record(Outcome.DELETED, ended=40, deleted=True)}
    assert part.drain() == {"job-train": None}


def test_the_deletion_of_a_job_that_has_ended_changes_nothing() -> None:
    part = seen(job(ended=("Complete", "", 20)))
    part.drain_changed()
    part.gone("job-train", at_us=us(40))

    assert part.drain_changed() == {}
    assert part.drain() == {"job-train": None}


def test_a_job_that_is_missing_from_a_list_ended_unobserved() -> None:
    part = seen(job(), job("other"))
    part.listed({"job-other"}, at_us=us(50))

    assert part.drain_changed()["job-train"] == record(Outcome.UNKNOWN, ended=50, deleted=True)
    assert part.drain().keys() == {"job-train", "job-other"}


def test_a_restart_continues_with_the_known_jobs() -> None:
    part = Jobs(Totals(accounting_start_us=us(0)))
    part.restore([record(Outcome.RUNNING)], at_us=us(30))
    part.listed((), at_us=us(50))

    assert part.drain_changed() == {"job-train": record(Outcome.UNKNOWN, ended=50, deleted=True)}


def test_only_jobs_whose_pods_request_gpus_are_kept() -> None:
    assert is_gpu_job(job(), Rules())
    assert not is_gpu_job(job(gpus=0), Rules())


@pytest.mark.parametrize(
    ("kind", "version", "uid"),
    [("Job", "batch/v1", "u"), ("Job", "batch.volcano.sh/v1alpha1", None), ("RayJob", "batch/v1", None)],
)
def test_pods_belong_to_the_job_that_controls_them(kind: str, version: str, uid: str | None) -> None:
    assert job_uid(OwnerReference(kind=kind, name="train", uid="u", api_version=version, controller=True)) == uid
    assert job_uid(None) is None
