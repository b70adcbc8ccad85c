"""All checks: their names, severities, and the resources that they need."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from gputally.posture.checks.class_checks import (
    meant_not_to_be_preempted,
    meant_not_to_preempt,
    never_at_the_bottom,
    never_is_no_protection,
    several_defaults,
    understated_preemption,
    unknown_policies,
    values_too_large,
)
from gputally.posture.checks.inversion_checks import (
    serving_below_training,
    serving_in_training_class,
    training_in_serving_class,
)
from gputally.posture.checks.job_checks import (
    preempted_but_complete,
    preemption_fails_job,
    retries_spent_on_preemptions,
)
from gputally.posture.checks.quota_checks import (
    classes_without_quota,
    replicas_above_quota,
    requests_above_quota,
    unreadable_quantities,
)
from gputally.posture.checks.workload_checks import (
    budgets_that_preemption_ignores,
    classified_by_default,
    grace_below_save_time,
    replicas_on_one_node,
    unknown_classes,
)
from gputally.posture.finding import Remark, Severity
from gputally.posture.objects import PostureResource as Resource
from gputally.posture.state import PostureState

WORKLOADS: Final = (
    Resource.PODS,
    Resource.JOBS,
    Resource.CRON_JOBS,
    Resource.DEPLOYMENTS,
    Resource.STATEFUL_SETS,
    Resource.TRAINING_JOBS,
)
_CLASSES: Final = (Resource.CLASSES,)
_QUOTAS: Final = (Resource.QUOTAS,)
_JOBS: Final = (Resource.JOBS, Resource.CRON_JOBS)


class Check(NamedTuple):
    """One check. Without a resource that it `needs` it is not possible; without one it `reads`, it sees less."""

    name: str
    severity: Severity
    find: Callable[[PostureState], Iterator[Remark]]
    needs: tuple[Resource, ...] = ()
    reads: tuple[Resource, ...] = ()


CHECKS: Final = (
    Check("unknown-preemption-policy", Severity.ERROR, unknown_policies, _CLASSES),
    Check("value-too-large", Severity.ERROR, values_too_large, _CLASSES),
    Check("several-defaults", Severity.ERROR, several_defaults, _CLASSES),
    Check("unknown-class", Severity.ERROR, unknown_classes, _CLASSES, WORKLOADS),
    Check("unreadable-quantity", Severity.ERROR, unreadable_quantities, (), (*_QUOTAS, *WORKLOADS)),
    Check("request-above-quota", Severity.ERROR, requests_above_quota, _QUOTAS, (*_CLASSES, *WORKLOADS)),
    Check("replicas-above-quota", Severity.WARNING, replicas_above_quota, _QUOTAS, (*_CLASSES, *WORKLOADS)),
    Check("class-without-quota", Severity.WARNING, classes_without_quota, (*_CLASSES, *_QUOTAS)),
    Check("serving-below-training", Severity.WARNING, serving_below_training, _CLASSES, WORKLOADS),
    Check("training-in-serving-class", Severity.WARNING, training_in_serving_class, _CLASSES, WORKLOADS),
    Check("serving-in-training-class", Severity.WARNING, serving_in_training_class, _CLASSES, WORKLOADS),
    Check("meant-not-to-preempt", Severity.WARNING, meant_not_to_preempt, _CLASSES),
    Check("meant-not-to-be-preempted", Severity.WARNING, meant_not_to_be_preempted, _CLASSES),
    Check("understated-preemption", Severity.WARNING, understated_preemption, _CLASSES),
    Check("classified-by-default", Severity.WARNING, classified_by_default, (), (*_CLASSES, *WORKLOADS)),
    Check("retries-spent-on-preemptions", Severity.WARNING, retries_spent_on_preemptions, (), (*_CLASSES, *_JOBS)),
    Check("preemption-fails-job", Severity.WARNING, preemption_fails_job, (), _JOBS),
    Check("preempted-but-complete", Severity.WARNING, preempted_but_complete, (), _JOBS),
    Check("grace-below-save-time", Severity.WARNING, grace_below_save_time, (), WORKLOADS),
    Check(
        "replicas-on-one-node", Severity.WARNING, replicas_on_one_node, (Resource.PODS,), (Resource.NODES, *_CLASSES)
    ),
    Check("never-at-the-bottom", Severity.INFO, never_at_the_bottom, _CLASSES),
    Check("never-is-no-protection", Severity.INFO, never_is_no_protection, _CLASSES),
    Check(
        "budget-ignored-by-preemption",
        Severity.INFO,
        budgets_that_preemption_ignores,
        (Resource.BUDGETS, *_CLASSES),
        WORKLOADS,
    ),
)
