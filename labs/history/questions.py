"""Queries GPU-hours by tenant in a month from gputally and kube-state-metrics, with accuracy and query cost."""

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Final, NamedTuple

from hack.prometheus import Answer, Prometheus
from labs.history.month import TEAM
from labs.history.window import Window
from labs.history.workload import Workload
from tests.behaviour.product import PRICE

PER_HOUR: Final = 3600
RUNS: Final = 5
REPEAT_LIMIT_S: Final = 60
"""A query is not repeated once its runs took this long in total."""
TOLERATED: Final = 0.01
PODS: Final = "on (namespace, pod, uid)"
REQUESTS: Final = 'kube_pod_container_resource_requests{resource="nvidia_com_gpu"}'
RUNNING: Final = 'kube_pod_status_phase{phase="Running"}'


class Question(NamedTuple):
    """A PromQL expression and its expected result: amounts by the label `by`."""

    name: str
    expression: str
    by: str
    truth: Mapping[str, float]


class Verdict(NamedTuple):
    """The median time, and the relative errors of the total and of the `worst` tenant.

    `wrong` is the number of tenants with an error above `TOLERATED`.
    """

    seconds: float
    runs: int
    samples_read: int
    in_all: float
    of_worst: float
    worst: str
    wrong: int


def to_gputally(window: Window, workload: Workload) -> Iterator[Question]:
    """Queries of the complete window, run at its end. Counters never decrease, so a difference of samples is enough."""
    hours = hours_of(window, workload)
    costs = {tenant: float(PRICE) * amount for tenant, amount in hours.items()}
    days = f"{window.days}d"
    seconds = "gputally_allocated_gpu_seconds_total"
    yield Question(
        "gputally, GPU-hours", f"sum by (tenant) (increase({seconds}[{days}])) / {PER_HOUR}", "tenant", hours
    )
    yield Question(
        "gputally, GPU-hours by difference",
        f"sum by (tenant) ({seconds} - ({seconds} offset {days} or {seconds} * 0)) / {PER_HOUR}",
        "tenant",
        hours,
    )
    yield Question(
        "gputally, cost", f"sum by (tenant) (increase(gputally_allocated_cost_total[{days}]))", "tenant", costs
    )


def to_peer(window: Window, workload: Workload) -> Iterator[Question]:
    """The same for kube-state-metrics, in three forms.

    The first is the obvious one: the GPUs of running pods, at each interval. The second counts the samples in which a
    pod ran and joins once; it requires a constant scrape interval. The third subtracts start times from completion
    times; it is exact if every pod completes and is kept until scraped. The last two require that pods are not resized.
    """
    hours, days, label = hours_of(window, workload), f"{window.days}d", f"label_{TEAM}"
    asked = f"sum by (namespace, pod, uid) (max_over_time({REQUESTS}[{days}]))"
    joined = f"{PODS} {asked} * {PODS} group_left ({label}) max_over_time(kube_pod_labels[{days}])"
    now = (
        f"max by (namespace, pod, uid) ({RUNNING} == 1) * {PODS} sum by (namespace, pod, uid) ({REQUESTS})"
        f" * {PODS} group_left ({label}) kube_pod_labels"
    )
    start = f"last_over_time(kube_pod_start_time[{days}])"
    since = f"clamp_min({start}, time() - {window.seconds})"
    end = f"last_over_time(kube_pod_completion_time[{days}]) or {PODS} {start} * 0 + time()"
    per_hour = f"{PER_HOUR / window.interval:g}"
    for form, expression in {
        "subquery": f"sum by ({label}) (sum_over_time(({now})[{days}:{window.interval}s])) / {per_hour}",
        "counting": f"sum by ({label}) (sum_over_time({RUNNING}[{days}]) * {joined}) / {per_hour}",
        "times": f"sum by ({label}) ((({end}) - {since}) * {joined}) / {PER_HOUR}",
    }.items():
        yield Question(f"kube-state-metrics, GPU-hours by {form}", expression, label, hours)


def hours_of(window: Window, workload: Workload) -> dict[str, float]:
    """The true GPU-hours by tenant."""
    return {tenant: amount / PER_HOUR for tenant, amount in workload.gpu_seconds(window.seconds).items()}


def ask(api: Prometheus, question: Question, *, at_s: float) -> Verdict:
    """Run the query several times sequentially. Raises: QueryRefused."""
    answers = [api.query(question.expression, at=at_s)]
    while len(answers) < RUNS and sum(answer.seconds for answer in answers) < REPEAT_LIMIT_S:
        answers.append(api.query(question.expression, at=at_s))
    return _verdict(question, answers)


def _verdict(question: Question, answers: list[Answer]) -> Verdict:
    found = {name: value for (name,), value in answers[-1].by(question.by).items()}
    errors = {tenant: found.get(tenant, 0) / amount - 1 for tenant, amount in question.truth.items()}
    worst = max(errors, key=lambda tenant: abs(errors[tenant]))
    return Verdict(
        seconds=median(answer.seconds for answer in answers),
        runs=len(answers),
        samples_read=answers[-1].samples_read,
        in_all=sum(found.values()) / sum(question.truth.values()) - 1,
        of_worst=errors[worst],
        worst=worst,
        wrong=sum(abs(part) > TOLERATED for part in errors.values()),
    )
