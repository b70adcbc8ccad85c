"""Jobs of batch/v1: their pods go on without a lost one; Indexed Jobs may be gangs, which only the Job itself says.

Source: kubernetes pkg/controller/job.
"""

from typing import Final

from gputally.frameworks.framework import Framework, GroupLabels, JobLabel, OnLoss

JOB: Final = "Job"
_NAME: Final = "batch.kubernetes.io/job-name"
_UID: Final = "batch.kubernetes.io/controller-uid"

BATCH: Final = Framework(
    jobs=(JobLabel(JOB, _NAME), JobLabel(JOB, "job-name")),
    groups=(GroupLabels(JOB, OnLoss.CONTINUE, (_NAME,), (_UID,), is_gang=False),),
)
