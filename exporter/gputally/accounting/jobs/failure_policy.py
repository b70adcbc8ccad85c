"""When a Job gives up: how its pods ended, and which of these ends its policy counts as failures."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from gputally.accounting.facts.outcome import outcome_of
from gputally.model.allocation import Outcome
from gputally.model.kube.workloads import ExitCodes, JobSpec, PodFailureRule
from gputally.model.pod_record import PodRecord
from gputally.model.units import US_PER_SECOND

SUCCEEDED: Final = "succeeded"
PREEMPTED: Final = "preempted"
DELETED: Final = "deleted"
NO_CODE: Final = -1
"""Stands for the exit code of a pod that ended without one."""
_KEPT_US: Final = 60 * US_PER_SECOND
"""A Job stops all of its pods at once: earlier deletions were somebody else's."""

PodEnd = tuple[str, int]
"""`SUCCEEDED` and 0, `PREEMPTED` and the exit code, or `DELETED` and the time of the request (µs)."""
CountedEnds = tuple[tuple[str, int, int], ...]
"""Ends, each with its number of pods."""
COUNT: Final = "Count"
IGNORE: Final = "Ignore"
FAIL_JOB: Final = "FailJob"
DEFAULT_BACKOFF_LIMIT: Final = 6
_LOOKS_US: Final = 2 * US_PER_SECOND
"""A Job looks at its pods a second after a change; times have whole seconds."""


def end_of(record: PodRecord) -> PodEnd | None:
    """How the pod ended by its own object; None if it has not, or did in a way that does not matter."""
    result = record.result
    if record.ending is None:
        return None
    outcome = outcome_of(record)
    if outcome is Outcome.PREEMPTED:
        return PREEMPTED, NO_CODE if result is None or result.exit_code is None else result.exit_code
    if result and result.phase == "Succeeded":
        return SUCCEEDED, 0
    return deletion_of(record) if outcome is Outcome.DELETED else None


def deletion_of(record: PodRecord) -> PodEnd | None:
    """The end of a deleted pod that was never bound."""
    return None if record.deletion_us is None else (DELETED, record.deletion_us)


def ends_by(known: CountedEnds, at_us: int) -> CountedEnds:
    """The ends, with no deletion later than `at_us`."""
    found: dict[PodEnd, int] = {}
    for kind, number, count in known:
        end = (kind, min(number, at_us) if kind == DELETED else number)
        found[end] = found.get(end, 0) + count
    return tuple((*end, count) for end, count in sorted(found.items()))


def with_ends(known: CountedEnds, change: Mapping[PodEnd, int]) -> CountedEnds:
    """The ends of forgotten pods, changed by these numbers; old deletions are left out."""
    found = {(kind, number): count for kind, number, count in known}
    for end, count in change.items():
        found[end] = found.get(end, 0) + count
    last_us = max((number for kind, number in found if kind == DELETED), default=0)
    return tuple(
        (kind, number, count)
        for (kind, number), count in sorted(found.items())
        if count > 0 and (kind != DELETED or number >= last_us - _KEPT_US)
    )


class CountingRule(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A rule of a podFailurePolicy, for disruptions or exit codes: `codes`, or all others if it `excludes` them."""

    action: str
    codes: tuple[int, ...] = ()
    excludes: bool = False
    disruption: bool = False

    def matches(self, code: int) -> bool:
        """Whether it matches a preempted pod that failed with this exit code."""
        has_code = code != NO_CODE and (self.codes != () or self.excludes)
        return self.disruption or (has_code and (code in self.codes) is not self.excludes)


class JobPolicy(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What of a Job's spec decides about failures.

    `waits` says that a pod counts once it has ended, not when its deletion is requested.
    """

    backoff_limit: int = DEFAULT_BACKOFF_LIMIT
    waits: bool = False
    rules: tuple[CountingRule, ...] = ()

    def action_for(self, code: int) -> str:
        """What the first rule that matches does with a preempted pod that failed with this exit code."""
        return next((rule.action for rule in self.rules if rule.matches(code)), COUNT)


def uses_retry(policy: JobPolicy, record: PodRecord) -> bool:
    """Whether the Job counts a pod, once it has ended, as a failure because it was preempted; False if in doubt."""
    end, requested_us = end_of(record), record.deletion_us
    if end is None or end[0] != PREEMPTED or record.end_us is None or requested_us is None:
        return False
    if end[1] == 0:
        return not policy.waits and record.end_us - requested_us > _LOOKS_US
    return policy.action_for(end[1]) == COUNT


def policy_of(spec: JobSpec) -> JobPolicy:
    """The policy of a Job. A podFailurePolicy implies the podReplacementPolicy Failed.

    Source: kubernetes pkg/controller/job/job_controller.go (onlyReplaceFailedPods, isPodFailed).
    """
    limit, failures = spec.backoff_limit, spec.pod_failure_policy
    return JobPolicy(
        backoff_limit=DEFAULT_BACKOFF_LIMIT if limit is None else limit,
        waits=spec.pod_replacement_policy == "Failed" or failures is not None,
        rules=tuple(_rules(failures.rules)) if failures else (),
    )


def _rules(rules: tuple[PodFailureRule, ...]) -> Iterator[CountingRule]:
    """Conditions other than a disruption say nothing about preempted pods.

    A rule for one container counts for all: a record has the exit code of the container that failed first.
    """
    for rule in rules:
        if rule.on_exit_codes:
            yield _code_rule(rule.action, rule.on_exit_codes)
        elif any(each.type == "DisruptionTarget" and each.status == "True" for each in rule.on_pod_conditions or ()):
            yield CountingRule(action=rule.action, disruption=True)


def _code_rule(action: str, codes: ExitCodes) -> CountingRule:
    return CountingRule(action=action, codes=codes.values, excludes=codes.operator == "NotIn")
